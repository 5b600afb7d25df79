/** Faulty tools: one throws, one never returns and ignores its signal. */
import { z } from 'zod';
import type { PluginDefinition } from '../../src/contracts/plugin.ts';
import { defineTool, type Tool } from '../../src/contracts/tool.ts';

export const plugin: PluginDefinition<Record<string, never>> = {
  id: 'faulty',
  configSchema: z.object({}),
  setup: ({ tools }) => {
    tools.register('explode', () => tool('explode', () => Promise.reject(new Error('the boiler burst'))));
    tools.register('hang', () => tool('hang', () => new Promise(() => undefined)));
    return () => undefined;
  },
};

function tool(name: string, execute: Tool['execute']): Tool {
  return defineTool<Record<string, unknown>>({
    name,
    description: 'Goes wrong.',
    inputSchema: z.object({}),
    parallelSafe: false,
    replay: 'never',
    authority: 'guest',
    execute,
  });
}
