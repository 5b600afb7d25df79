import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { CodeSearchConfig } from './config.ts';

const maxSearchMs = 20_000;

const inputSchema = z.object({
  query: z
    .string()
    .trim()
    .min(1)
    .max(1000)
    .describe(
      'Words are found literally, /…/ is a regular expression. Filters: repo:, file:, lang:, type:symbol, case:yes.',
    ),
  count: z.int().min(1).max(50).default(20).describe('How many lines to show.'),
});

export function createCodeSearchTool(config: CodeSearchConfig): Tool {
  return defineTool({
    name: 'code_search',
    description: `Searches public source code through ${new URL(config.baseUrl).host}. Shows each line that matches, with repository, path and line number.`,
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: config.authority,
    async execute({ query, count }, { signal }) {
      const { searchCode } = await import('./search-code.ts');
      const until = AbortSignal.timeout(maxSearchMs);
      const { lines, note } = await searchCode(config.baseUrl, { query, count, signal, until });
      if (lines.length === 0) return { text: note ?? 'No matches.' };
      const host = new URL(config.baseUrl).host;
      return { untrusted: { about: `code found by ${host}`, text: lines.join('\n') }, text: note ?? '' };
    },
  });
}
