/** Tools with an effect that a test can count: each execution adds one line to the file named by EFFECTS_FILE. */
import { appendFileSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { PluginDefinition } from '../../src/contracts/plugin.ts';
import { defineTool, type Tool } from '../../src/contracts/tool.ts';
import { askingTool, keepAnswering } from './asking-tool.ts';
import { killTree } from './process-tree.ts';

/** `dies`: the process is killed inside the tool until the file has more lines than this. */
const inputSchema = z.object({ dies: z.int().default(0) });

export const plugin: PluginDefinition<Record<string, never>> = {
  id: 'effects',
  configSchema: z.object({}),
  setup: ({ tools, settle, log }) => {
    const file = process.env.EFFECTS_FILE ?? '';
    tools.register('once', () => effect('once', 'never'));
    tools.register('again', () => effect('again', 'safe'));
    tools.register('attach', () => attach);
    tools.register('ask', () => askingTool(file, settle));
    const over = new AbortController();
    const answering = keepAnswering(file, settle, over.signal);
    // At the end of a test the store may be gone, which doesn't matter here.
    answering.catch((error: unknown) => log.debug({ error }, 'effects.answering-ended'));
    return () => over.abort();
  },
};

const attach = defineTool<{ readonly files: readonly string[] }>({
  name: 'attach',
  description: 'Attaches files.',
  inputSchema: z.object({ files: z.array(z.string()).default(['notes.txt']) }),
  parallelSafe: false,
  replay: 'safe',
  authority: 'guest',
  execute: async ({ files }) => ({ text: 'made', files: files.map((path) => ({ path })) }),
});

function effect(name: string, replay: Tool['replay']): Tool {
  return defineTool<z.infer<typeof inputSchema>>({
    name,
    description: 'Leaves a line.',
    inputSchema,
    parallelSafe: false,
    replay,
    authority: 'guest',
    execute: async ({ dies }, { callId }) => {
      const file = process.env.EFFECTS_FILE ?? '';
      appendFileSync(file, `${name} ${callId}\n`);
      if (readFileSync(file, 'utf8').trim().split('\n').length <= dies) killTree(process.pid);
      return { text: 'done' };
    },
  });
}
