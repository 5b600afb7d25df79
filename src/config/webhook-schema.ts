/** The settings of webhooks: addresses at which other systems report something to an agent. */
import { z } from 'zod';
import type { Secret } from './secret.ts';

const webhook = z.strictObject({
  keyEnv: z
    .string()
    .regex(/^\w{1,100}$/, "isn't a variable's name, for example ALERTS_SECRET")
    // Its absence is told with what to do about it.
    .exactOptional()
    .describe('Variable of its secret, at least 16 characters. Required.'),
  signature: z
    .enum(['none', 'github', 'stripe', 'standard', 'grafana'])
    .default('none')
    .describe(
      'How its sender proves that it knows the secret: `none` sends it along, the others sign the body with it.',
    ),
  agent: z.string().min(1).exactOptional().describe('The agent that reads it; default: your default agent.'),
  prompt: z
    .string()
    .min(1)
    .max(4_000)
    .exactOptional()
    .describe('What the agent is to do with a delivery; default: say what happened.'),
  template: z
    .string()
    .min(1)
    .max(4_000)
    .exactOptional()
    .describe(
      'What the agent gets of the body, for example "{{status}}: {{commonAnnotations.summary}}"; default: all of it.',
    ),
});

/** All webhooks, by name. */
export const webhooks = z
  .record(
    z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'use up to 64 small letters, digits, - and _'),
    webhook,
  )
  .default({})
  .describe('Addresses at which other systems report something, `/webhooks/<name>`.');

/** One webhook with its secret. */
export type WebhookSettings = Readonly<z.output<typeof webhook>> & { readonly secret: Secret };
