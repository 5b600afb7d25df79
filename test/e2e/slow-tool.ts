/** A tool that works until the file named by GO_FILE exists; each execution adds one line to EFFECTS_FILE. */
import { appendFileSync, existsSync } from 'node:fs';
import { z } from 'zod';
import type { PluginDefinition } from '../../src/contracts/plugin.ts';
import { defineTool } from '../../src/contracts/tool.ts';
import { until } from './until.ts';

export const plugin: PluginDefinition<Record<string, never>> = {
  id: 'slow',
  configSchema: z.object({}),
  setup: ({ tools }) => {
    tools.register('slow', () =>
      defineTool<Record<string, unknown>>({
        name: 'slow',
        description: 'Takes its time.',
        inputSchema: z.object({}),
        parallelSafe: false,
        replay: 'never',
        authority: 'guest',
        execute: async (_input, { callId }) => {
          appendFileSync(process.env.EFFECTS_FILE ?? '', `${callId}\n`);
          await until(() => existsSync(process.env.GO_FILE ?? ''), { what: 'the file that lets it go on' });
          return { text: 'done' };
        },
      }),
    );
    return () => undefined;
  },
};
