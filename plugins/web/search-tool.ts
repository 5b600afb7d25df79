import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { WebConfig } from './config.ts';
import { serviceOf } from './search-service.ts';

const maxSearchMs = 15_000;

const inputSchema = z.object({
  query: z.string().trim().min(1).max(400),
  count: z.int().min(1).max(10).default(5).describe('How many results.'),
});

/** Returns the tool; none if no search service can be asked. */
export function createSearchTool(config: WebConfig): readonly Tool[] {
  const service = serviceOf(config);
  if (service === undefined) return [];
  const tool = defineTool({
    name: 'web_search',
    description:
      'Searches the web. Shows title, address and an extract of each result; read one with web_fetch.',
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: config.authority,
    async execute({ query, count }, { signal }) {
      const { searchWeb } = await import('./search-web.ts');
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(maxSearchMs)]);
      const { results, note } = await searchWeb(service, { query, count, signal: inTime });
      const text = results.map(
        ({ title, url, extract }, index) => `${index + 1}. ${title}\n${url}\n${extract}`,
      );
      if (text.length === 0) return { text: `No results.${note === '' ? '' : ` ${note}`}` };
      return { untrusted: { about: `results of ${service.name}`, text: text.join('\n\n') }, text: '' };
    },
  });
  return [tool];
}
