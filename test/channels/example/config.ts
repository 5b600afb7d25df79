import { z } from 'zod';

export const exampleConfigSchema = z.object({
  url: z.url(),
  /** Comes from the environment, never from the file. */
  token: z.string().min(8),
  /** How events arrive; a real network usually leaves no choice. */
  receive: z.enum(['pull', 'push', 'hook']),
  /** The secret that the network sends with each call of the webhook. */
  hookSecret: z.string().min(16).default('example-hook-secret'),
});

export type ExampleConfig = z.infer<typeof exampleConfigSchema>;
