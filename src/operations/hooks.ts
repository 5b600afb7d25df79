import { z } from 'zod';
import type { Hooks } from '../hooks/hooks.ts';
import { operation } from './operation.ts';

export type HooksDeps = { readonly hooks: Pick<Hooks, 'states'> };

/** Lists the hooks of this process. */
export const listHooks = operation({
  name: 'hooks',
  method: 'GET',
  right: 'operator',
  scope: 'read',
  summary: 'Lists the registered hooks, and how often each was called and failed',
  answer: z.object({
    hooks: z
      .array(
        z.object({
          event: z.string(),
          owner: z.string().describe('The plugin, or the script'),
          state: z.enum(['active', 'suspended', 'off']),
          calls: z.int(),
          failures: z.int(),
          problem: z.string().optional().describe('Why it is off, or why it failed last'),
        }),
      )
      .readonly(),
  }),
  run: async ({ hooks }: HooksDeps) => ({ hooks: hooks.states() }),
});
