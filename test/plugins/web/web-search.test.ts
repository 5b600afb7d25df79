import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { ToolOutput } from '#contracts/tool.ts';
import { type AWeb, aWeb, listen } from './a-web.ts';
import { searchAnswers } from './search-answers.ts';

const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

type Backend = keyof typeof searchAnswers;
type Asked = { readonly request: IncomingMessage; readonly body: string };

/** Starts a search service that gives one answer, and the tools that ask it. */
async function aSearch(
  backend: Backend,
  {
    status = 200,
    body = '',
    headers = {},
  }: { status?: number; body?: string; headers?: Record<string, string> } = {},
) {
  const asked: Asked[] = [];
  const service = await listen('127.0.0.1', async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    asked.push({ request, body: Buffer.concat(chunks).toString() });
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  });
  const search = { backend, baseUrl: `http://127.0.0.1:${service.port}/` };
  const web: AWeb = await aWeb({}, { config: { search, searchKey: 'a-key-of-tests' } });
  cleanUps.push(service.close, web.close);
  const call = (args: object): Promise<ToolOutput> => web.call('web_search', args);
  return { asked, call, service };
}

describe('web_search', () => {
  it.each(Object.keys(searchAnswers) as Backend[])('lists the results of %s as data', async (backend) => {
    const { call } = await aSearch(backend, { body: JSON.stringify(searchAnswers[backend]) });
    const { text, untrusted } = await call({ query: 'tides', count: 2 });
    expect(text).toBe('');
    expect(untrusted?.about).toMatch(/^results of /);
    expect(untrusted?.text).toBe(
      '1. Tide tables\nhttps://tides.example/tables\nHigh and low water.\n\n' +
        '2. Why tides?\nhttps://moon.example/why\nThe moon pulls.',
    );
  });

  it('sends the key in the header that each service reads, and nowhere else', async () => {
    const brave = await aSearch('brave', { body: JSON.stringify(searchAnswers.brave) });
    await brave.call({ query: 'a&b=c', count: 3 });
    const [first] = brave.asked;
    expect(first?.request.url).toBe('/res/v1/web/search?q=a%26b%3Dc&count=3&text_decorations=false');
    expect(first?.request.headers['x-subscription-token']).toBe('a-key-of-tests');
    const tavily = await aSearch('tavily', { body: JSON.stringify(searchAnswers.tavily) });
    await tavily.call({ query: 'tides' });
    const [second] = tavily.asked;
    expect(second?.request.headers.authorization).toBe('Bearer a-key-of-tests');
    expect(JSON.parse(second?.body ?? '')).toEqual({ query: 'tides', max_results: 5 });
    const searxng = await aSearch('searxng', { body: JSON.stringify(searchAnswers.searxng) });
    await searxng.call({ query: 'tides' });
    expect(searxng.asked[0]?.request.url).toBe('/search?q=tides&format=json');
    expect(JSON.stringify(searxng.asked[0]?.request.headers)).not.toContain('a-key-of-tests');
  });

  it.each<[Backend, number, string, string]>([
    ['brave', 422, '{"error":{"code":"SUBSCRIPTION_TOKEN_INVALID","status":422}}', 'check BRAVE_API_KEY'],
    ['brave', 422, '{"error":{"code":"VALIDATION","meta":{}}}', 'failed with status 422'],
    ['brave', 401, '{}', 'check BRAVE_API_KEY'],
    ['brave', 429, '{"error":{"code":"RATE_LIMITED"}}', 'answers no more questions for now'],
    [
      'tavily',
      401,
      '{"detail":{"error":"Unauthorized: missing or invalid API key."}}',
      'check TAVILY_API_KEY',
    ],
    [
      'tavily',
      432,
      '{"detail":{"error":"This request exceeds your plan"}}',
      'the plan is used up (status 432)',
    ],
    ['searxng', 403, '<h1>Forbidden</h1>', 'add "json" to search.formats'],
    ['searxng', 429, 'Too Many Requests', 'too many at once'],
    ['searxng', 500, '', 'failed with status 500'],
    ['searxng', 200, '<!doctype html>', 'something else than search results'],
    ['tavily', 200, '{"results":{}}', 'something else than search results'],
  ])('says what to do about %s with status %i and %s', async (backend, status, body, sentence) => {
    const { call } = await aSearch(backend, { status, body });
    await expect(call({ query: 'tides' })).rejects.toThrow(sentence);
  });

  it('follows no redirect, which would pass on the key', async () => {
    const elsewhere = await aSearch('brave', { body: '{}' });
    const { call } = await aSearch('brave', {
      status: 302,
      headers: { location: `http://127.0.0.1:${elsewhere.service.port}/` },
    });
    await expect(call({ query: 'tides' })).rejects.toThrow("redirects, which isn't followed");
    expect(elsewhere.service.connections()).toBe(0);
  });

  it('opens none of the addresses in the results', async () => {
    const target = await aSearch('searxng');
    const url = `http://127.0.0.1:${target.service.port}/`;
    const results = [
      { title: 'x', url, content: 'y', thumbnail: url },
      { title: 'z', url: 'javascript:1' },
    ];
    const { call } = await aSearch('searxng', { body: JSON.stringify({ results }) });
    expect((await call({ query: 'tides' })).untrusted?.text).toBe(`1. x\n${url}\ny`);
    expect(target.service.connections()).toBe(0);
  });

  it('says that nothing was found, and how many engines did not answer', async () => {
    const silent = {
      results: [],
      unresponsive_engines: [
        ['duckduckgo', 'timeout'],
        ['startpage', 'CAPTCHA'],
      ],
    };
    const searxng = await aSearch('searxng', { body: JSON.stringify(silent) });
    expect((await searxng.call({ query: 'tides' })).text).toBe(
      "No results. 2 of the engines that SearXNG asks didn't answer.",
    );
    const brave = await aSearch('brave', { body: '{"type":"search"}' });
    expect((await brave.call({ query: 'tides' })).text).toBe('No results.');
  });

  it.each([
    [{}, 'ok', 'no web_search: set plugins.web.search'],
    [{ search: { backend: 'searxng' } }, 'warning', 'SearXNG needs its address'],
    [{ search: { backend: 'brave' } }, 'warning', 'Brave Search needs a key'],
    [{ search: { backend: 'tavily' }, searchKey: 'k' }, 'ok', 'web_search through Tavily'],
  ])('tells doctor about %j', async (config, result, detail) => {
    const web = await aWeb({}, { config });
    cleanUps.push(web.close);
    expect(await web.check()).toMatchObject({ result, detail: expect.stringContaining(detail) });
    expect(web.tools().map(({ name }) => name)).toEqual(
      detail.includes('through') ? ['web_fetch', 'web_search'] : ['web_fetch'],
    );
  });
});
