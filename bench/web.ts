import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Tool, ToolContext, ToolRun } from '#contracts/tool.ts';
import { createFetchTool } from '../plugins/web/fetch-tool.ts';
import type { Figure } from './figure.ts';
import { median } from './statistics.ts';

const pageBytes = 2_000_000;

/** Measures `web_fetch` of an article of 2 MB from a local server, and how long it keeps the event loop busy. */
export async function measureWeb(repeats: number): Promise<readonly Figure[]> {
  const page = anArticle();
  const server = createServer((_req, res) => res.setHeader('content-type', 'text/html').end(page));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const settings = { enabled: true, authority: 'member' as const, ports: [port] };
  const tool = createFetchTool({ ...settings, allowHosts: [`127.0.0.1:${port}`] }, {});
  const read = () => readOnce(tool, `http://127.0.0.1:${port}/`);
  try {
    const first = await read();
    const loop = performance.eventLoopUtilization();
    const [before, times] = [process.cpuUsage(), [] as number[]];
    for (let index = 0; index < repeats; index += 1) times.push(await read());
    const { user, system } = process.cpuUsage(before);
    const { active } = performance.eventLoopUtilization(loop);
    const name = 'web_fetch of a 2 MB page';
    return [
      { name: `${name}, the first of a process`, unit: 'ms', parley: first, target: '' },
      { name, unit: 'ms', parley: median(times), target: '' },
      { name: `${name}: processor time`, unit: 'ms', parley: (user + system) / 1000 / repeats, target: '' },
      { name: `${name}: on the event loop`, unit: 'ms', parley: active / repeats, target: '≤ 50 ms' },
    ];
  } finally {
    server.close();
  }
}

async function readOnce(tool: Tool, url: string): Promise<number> {
  const from = performance.now();
  const run = {} as ToolRun;
  const ctx: ToolContext = {
    callId: 'c',
    run,
    signal: new AbortController().signal,
    update: () => undefined,
  };
  await tool.execute(tool.inputSchema.parse({ url }), ctx);
  return performance.now() - from;
}

function anArticle(): string {
  const words = 'Lorem ipsum dolor sit amet, consectetur adipiscing elit. '.repeat(3);
  let page = '<!doctype html><html><head><title>Long</title></head><body><article>';
  for (let index = 0; page.length < pageBytes; index += 1)
    page += `${index % 20 === 0 ? `<h2>Part ${index}</h2>` : ''}<p>About <a href="/x/${index}">it</a>, <b>bold</b>. ${words}</p>`;
  return `${page}</article></body></html>`;
}
