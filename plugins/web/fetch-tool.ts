import { z } from 'zod';
import { defineTool, type Tool } from '#contracts/tool.ts';
import type { WebConfig } from './config.ts';
import type { Network } from './fetch-page.ts';

/** Longest time for a page, with its redirects, its name servers and its parsing, ms. */
const maxFetchMs = 20_000;

const inputSchema = z.object({
  url: z.string().max(4096).describe('Begins with https:// or http://.'),
  offset: z.int().min(0).default(0).describe('Where to read on in a long page, in characters.'),
});

export function createFetchTool(config: WebConfig, network: Network): Tool {
  return defineTool({
    name: 'web_fetch',
    description:
      'Reads a public web page, PDF or text file as Markdown, without scripts, sign-in or cookies. Long ones are ' +
      `shown in pieces: continue with offset.${alsoAllowed(config)}`,
    inputSchema,
    parallelSafe: true,
    replay: 'safe',
    authority: config.authority,
    async execute({ url, offset }, { signal }) {
      // Loaded by the first call: a gateway whose agents never read a page needs neither.
      const [{ fetchPage }, { readPage }] = await Promise.all([
        import('./fetch-page.ts'),
        import('./read-page.ts'),
      ]);
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(network.timeoutMs ?? maxFetchMs)]);
      const page = await fetchPage(url, { config, network, signal: inTime });
      const { text, total } = await readPage(page, { offset, signal: inTime });
      const next = offset + text.length;
      return {
        untrusted: { about: `page ${page.url.host}`, text },
        text: next < total ? `(${total - next} more characters: call again with offset ${next})` : '',
        metadata: { url: page.url.href },
      };
    },
  });
}

function alsoAllowed({ allowHosts }: WebConfig): string {
  return allowHosts.length === 0 ? '' : ` It also reads from: ${allowHosts.join(', ')}.`;
}
