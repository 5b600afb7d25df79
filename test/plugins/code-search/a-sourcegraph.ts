import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ToolOutput, ToolRun } from '#contracts/tool.ts';
import { plugin } from '../../../plugins/code-search/index.ts';
import { createPluginHost } from '../../../src/plugin-host/plugin-host.ts';
import { noHooks } from '../../support/no-hooks.ts';
import { nothingToSettle } from '../../support/nothing-to-settle.ts';
import { silentLog } from '../../support/silent-log.ts';
import { listen } from '../web/a-web.ts';

/** Writes events as Sourcegraph's stream API does. */
export const events = (...list: readonly (readonly [name: string, data: unknown])[]): string =>
  list.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`).join('');

/** A stream with the shapes of https://sourcegraph.com/docs/api/stream-api and of Sourcegraph's own client. */
export const recorded = {
  content: {
    type: 'content',
    path: 'cmd/tides/moon.go',
    repositoryID: 42_693_708,
    repository: 'gitlab.example/sea/tides',
    repoLastFetched: '2026-11-19T21:54:27.009309Z',
    branches: [''],
    commit: '0725aa021040f3c864bd5043caf965e7bc1e7a51',
    hunks: null,
    lineMatches: [
      { line: '\t\thigh, err := moon.pull(ctx, args)', lineNumber: 44, offsetAndLengths: [[15, 9]] },
      { line: 'func (m *Moon) pull(ctx Context) {', lineNumber: 7, offsetAndLengths: [[15, 4]] },
    ],
  },
  symbol: {
    type: 'symbol',
    path: 'src/moon.ts',
    repository: 'github.example/sea/moon',
    commit: '1725aa021040f3c864bd5043caf965e7bc1e7a51',
    symbols: [
      {
        url: '/github.example/sea/moon/-/blob/src/moon.ts?L12:14-12:18',
        name: 'pull',
        containerName: 'Moon',
        kind: 'METHOD',
        line: 12,
      },
    ],
  },
  path: { type: 'path', path: 'docs/moon.md', repository: 'github.example/sea/moon' },
  repo: { type: 'repo', repository: 'github.example/sea/moon', repoStars: 3, description: 'The moon.' },
  commit: {
    type: 'commit',
    url: '/github.example/sea/moon/-/commit/2725aa',
    repository: 'github.example/sea/moon',
    oid: '2725aa',
    message: 'pull harder\n\nIt is spring.',
    authorName: 'Ada',
    content: '```diff\n…```',
    ranges: [[1, 2, 3]],
  },
  person: { type: 'person', handle: 'ada' },
  progress: {
    done: false,
    matchCount: 6,
    durationMs: 39,
    skipped: [
      { reason: 'shard-match-limit', title: 'result limit hit', message: 'Not all …', severity: 'info' },
      { reason: 'shard-timedout', title: '1,200 timed out', message: 'Not all …', severity: 'warn' },
    ],
  },
  filters: [{ value: 'lang:go', label: 'lang:go', count: 3, limitHit: false, kind: 'lang' }],
} as const;

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a server that answers each search so, and the tool that asks it. */
export async function aSourcegraph(answer: Answer | string) {
  const asked: IncomingMessage[] = [];
  let ended = 0;
  const server = await listen('127.0.0.1', (request, response) => {
    asked.push(request);
    response.on('close', () => {
      ended += 1;
    });
    if (typeof answer === 'function') return answer(request, response);
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).end(answer);
  });
  const host = createPluginHost({ log: silentLog, settle: nothingToSettle, hooks: noHooks });
  const baseUrl = `http://127.0.0.1:${server.port}/`;
  await host.load([{ definition: plugin, config: { baseUrl } }]);
  const run = { workspace: '/nowhere', authority: 'owner' } as ToolRun;
  return {
    baseUrl,
    asked,
    ended: () => ended,
    async call(args: object, signal = new AbortController().signal): Promise<ToolOutput> {
      const [tool] = host.toolsFor(run);
      if (tool === undefined) throw new Error('no tool');
      const output = await tool.execute(tool.inputSchema.parse(args), {
        ...{ callId: 'c1', run, signal },
        update: () => undefined,
      });
      if ('parked' in output) throw new Error('the tool waits');
      return output;
    },
    close: async () => {
      await host.close();
      await server.close();
    },
  };
}
