/** Asks one search service. Redirects aren't followed: they would decide who gets the key and the question. */
import { request } from 'undici';
import { z } from 'zod';
import type { SearchService } from './search-service.ts';
import { networkProblem, webProblem } from './web-problem.ts';

export type SearchResult = { readonly title: string; readonly url: string; readonly extract: string };

export type SearchAnswer = {
  readonly results: readonly SearchResult[];
  /** Why there may be none; empty if nothing is known. */
  readonly note: string;
};

type Question = { readonly query: string; readonly count: number; readonly signal: AbortSignal };

const maxBytes = 2 * 1024 * 1024;
const maxTitle = 200;
const maxExtract = 600;

/** Throws ParleyError `tool_failed` with a sentence that says what to do. */
export async function searchWeb(service: SearchService, question: Question): Promise<SearchAnswer> {
  const { status, text } = await ask(service, question);
  if (status !== 200) throw webProblem(refusalOf(service, { status, text }));
  const answer = readAnswer(service, text);
  const results = answer.results.filter(({ url }) => /^https?:\/\//i.test(url)).slice(0, question.count);
  return {
    results: results.map(({ title, url, extract }) => ({
      title: onOneLine(title, maxTitle),
      url: url.slice(0, 2000),
      extract: onOneLine(extract, maxExtract),
    })),
    note: answer.note,
  };
}

async function ask(
  service: SearchService,
  { query, count, signal }: Question,
): Promise<{ readonly status: number; readonly text: string }> {
  const { baseUrl, key } = service;
  const accept = 'application/json';
  try {
    switch (service.backend) {
      case 'searxng': {
        const url = `${baseUrl}/search?${new URLSearchParams({ q: query, format: 'json' })}`;
        return await send(url, { signal, headers: { accept } });
      }
      case 'brave': {
        const asked = new URLSearchParams({ q: query, count: String(count), text_decorations: 'false' });
        const headers = { accept, 'x-subscription-token': key };
        return await send(`${baseUrl}/res/v1/web/search?${asked}`, { signal, headers });
      }
      case 'tavily': {
        const headers = { accept, authorization: `Bearer ${key}`, 'content-type': accept };
        const body = JSON.stringify({ query, max_results: count });
        return await send(`${baseUrl}/search`, { signal, headers, method: 'POST', body });
      }
    }
  } catch (error) {
    throw networkProblem(error, service.name, signal);
  }
}

async function send(
  url: string,
  options: Parameters<typeof request>[1],
): Promise<{ readonly status: number; readonly text: string }> {
  const { statusCode, body } = await request(url, options);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    // Leaving the loop ends the connection.
    if (bytes > maxBytes) throw webProblem('The search service sent too much.');
    chunks.push(chunk);
  }
  return { status: statusCode, text: Buffer.concat(chunks).toString() };
}

/** Says what a refusal means. Brave answers 422 to a wrong key, Tavily 432 and 433 when a plan is used up. */
function refusalOf(
  { backend, name, variable }: SearchService,
  { status, text }: { readonly status: number; readonly text: string },
): string {
  const isKeyRefused = status === 401 || status === 403 || (status === 422 && /token/i.test(text));
  if (status >= 300 && status < 400)
    return `${name} redirects, which isn't followed. The owner should set plugins.web.search.baseUrl to where it leads.`;
  if (backend === 'searxng' && status === 403)
    return 'SearXNG refuses to answer as JSON. The owner should add "json" to search.formats in its settings.yml.';
  if (isKeyRefused && variable !== '')
    return `${name} refuses the key (status ${status}). The owner should check ${variable}, and restart Parley.`;
  if ([402, 429, 432, 433].includes(status))
    return `${name} answers no more questions for now: too many at once, or the plan is used up (status ${status}).`;
  return `${name} failed with status ${status}.`;
}

const line = z.string().catch('');
const searxng = z.object({
  results: z.array(z.object({ title: line, url: line, content: line })),
  unresponsive_engines: z.array(z.tuple([line, line])).catch([]),
});
const braveResult = z.object({ title: line, url: line, description: line });
/** Without results, Brave leaves `web` out. */
const brave = z.object({ web: z.object({ results: z.array(braveResult) }).optional() });
const tavily = z.object({ results: z.array(z.object({ title: line, url: line, content: line })) });

function readAnswer({ backend, name }: SearchService, text: string): SearchAnswer {
  try {
    const json: unknown = JSON.parse(text);
    switch (backend) {
      case 'searxng': {
        const { results, unresponsive_engines: silent } = searxng.parse(json);
        const note =
          silent.length === 0 ? '' : `${silent.length} of the engines that SearXNG asks didn't answer.`;
        return { results: results.map(({ content, ...rest }) => ({ ...rest, extract: content })), note };
      }
      case 'brave': {
        const results = brave.parse(json).web?.results ?? [];
        return {
          results: results.map(({ description, ...rest }) => ({ ...rest, extract: description })),
          note: '',
        };
      }
      case 'tavily':
        return {
          results: tavily.parse(json).results.map(({ content, ...rest }) => ({ ...rest, extract: content })),
          note: '',
        };
    }
  } catch (error) {
    throw webProblem(`${name} sent something else than search results.`, error);
  }
}

function onOneLine(text: string, maxLength: number): string {
  const flat = text
    .slice(0, maxLength * 4)
    .replace(/\s+/g, ' ')
    .trim();
  return flat.length <= maxLength ? flat : `${flat.slice(0, maxLength - 1).toWellFormed()}…`;
}
