import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import type { PluginApi } from '#contracts/plugin.ts';
import { definePlugin } from '#contracts/plugin-kit.ts';
import { defineTool, type ToolContext, type ToolRun } from '#contracts/tool.ts';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { pluginProblems } from '../../src/plugin-host/plugin-findings.ts';
import { createPluginHost, type PluginHostDeps } from '../../src/plugin-host/plugin-host.ts';
import { withinSetupTime } from '../../src/plugin-host/setup-time.ts';
import { noHooks } from '../support/no-hooks.ts';
import { nothingToSettle } from '../support/nothing-to-settle.ts';
import { recordingLog, silentLog } from '../support/silent-log.ts';

async function hosting(setup: (api: PluginApi) => unknown, deps: Partial<PluginHostDeps> = {}) {
  const { log, lines } = recordingLog();
  let now = 0;
  const host = createPluginHost({ log, settle: nothingToSettle, hooks: noHooks, now: () => now, ...deps });
  onTestFinished(host.close);
  const definition = definePlugin({ id: 'wild', setup: (api) => void setup(api) });
  const [report] = await host.load([{ definition, config: {}, isOutside: true }]);
  const pass = (ms: number) => {
    now += ms;
  };
  return {
    host,
    lines,
    report,
    pass,
    problems: () => pluginProblems(host.reports()).map(({ text }) => text),
  };
}

const tick = (ms = 20) => new Promise((resolve) => setTimeout(resolve, ms));
// The factories of these tests read nothing of it.
const run = { runId: 'r1' } as ToolRun;

it('names a plugin whose timers and promises fail, and keeps running', async () => {
  const { problems } = await hosting(() => {
    setTimeout(() => {
      throw new Error('late');
    }, 1);
    void Promise.reject(new Error('floating'));
  });
  await expect
    .poll(problems)
    .toEqual([expect.stringMatching(/^plugin wild: 2 faults; the last in .*: late$/)]);
});

it('stops the timers that a plugin leaves when it ends, and says how many', async () => {
  let ticks = 0;
  const { host, lines } = await hosting(() => {
    setInterval(() => ticks++, 1);
    clearInterval(setInterval(() => ticks++, 1));
  });
  await host.close();
  const before = ticks;
  await tick();
  expect(ticks).toBe(before);
  expect(lines).toContainEqual('plugin.timers-stopped {"plugin":"wild","timers":1}');
});

it('drops what a plugin logs beyond 120 lines a minute, and says so', async () => {
  let api: PluginApi | undefined;
  const { lines, pass, problems } = await hosting((given) => {
    api = given;
  });
  const flood = () =>
    Array.from({ length: 1000 }, () => api?.log.child({ a: 1 }).info({ b: 'x'.repeat(9000) }, 'noise'));
  flood();
  expect(lines.filter((line) => line.startsWith('noise')).length).toBe(120);
  expect(lines.find((line) => line.startsWith('noise'))?.length).toBeLessThan(8_100);
  expect(problems()[0]).toContain('more than 120 lines in a minute');
  pass(60_000);
  flood();
  expect(lines.filter((line) => line.startsWith('noise')).length).toBe(240);
});

it('withholds tools whose schema would spoil each request, and names the plugin', async () => {
  const tool = {
    description: 'x',
    parallelSafe: true,
    replay: 'safe',
    authority: 'guest',
    execute: async () => ({ text: '' }),
  } as const;
  const { host, problems } = await hosting(({ tools }) => {
    tools.register('good', () => defineTool({ ...tool, name: 'good', inputSchema: z.object({}) }));
    // Both pass the compiler only in JavaScript.
    const lies = {
      a: { type: 'object' },
      b: z.object({ when: z.date() }),
      c: { safeParse: () => ({ success: true }) },
    };
    for (const [name, schema] of Object.entries(lies))
      tools.register(name, () => defineTool({ ...tool, name, inputSchema: schema as z.ZodType }));
  });
  expect(host.toolsFor(run).map(({ name }) => name)).toEqual(['good']);
  expect(problems()[0]).toContain('3 faults; the last in tool "c"');
});

it.each<[string, (api: PluginApi) => unknown, RegExp]>([
  [
    'a command of Parley',
    ({ commands }) => commands.register({ name: 'help', description: 'Helps', run: () => ({}) }),
    /one of Parley's own/,
  ],
  [
    'a command without a name',
    ({ commands }) => commands.register({ name: 'No No', description: 'Helps', run: () => ({}) }),
    /isn't a command/,
  ],
  [
    'a command for nobody known',
    ({ commands }) =>
      commands.register({ name: 'a', description: 'Helps', right: 'king' as 'owner', run: () => ({}) }),
    /right is anyone, admins or owner/,
  ],
  [
    'a path that leads out',
    ({ routes }) => routes.register({ method: 'GET', path: '../api', handle: () => ({}) }),
    /isn't a path below/,
  ],
  [
    'a schedule without a pause',
    ({ schedules }) => schedules.every('a', { everyMs: 0 }, () => undefined),
    /everyMs/,
  ],
])('stays off if it registers %s', async (_, setup, problem) => {
  const { report } = await hosting(setup);
  expect(report).toMatchObject({ kind: 'failed', problem: expect.stringMatching(problem) });
});

it('registers nothing after its setup', async () => {
  let api: PluginApi | undefined;
  await hosting((given) => {
    api = given;
  });
  const late: (() => void)[] = [
    () => api?.commands.register({ name: 'a', description: 'abc', run: () => ({}) }),
    () => api?.routes.register({ method: 'GET', path: 'a', handle: () => ({}) }),
    () => api?.providers.register('a', () => Promise.reject() as never),
    () => api?.schedules.every('a', { everyMs: 1000 }, () => undefined),
  ];
  for (const register of late) expect(register).toThrow('registered after setup');
});

it('gives a setup a limited time', async () => {
  expect(await withinSetupTime(new Promise(() => undefined), 5)).toBe('late');
  expect(await withinSetupTime(7, 5)).toBe(7);
});

it('ends the signal of a plugin that is stopped', async () => {
  let api: PluginApi | undefined;
  const { host } = await hosting((given) => {
    api = given;
  });
  expect(api?.signal.aborted).toBe(false);
  await host.close();
  expect(api?.signal.aborted).toBe(true);
});

it('owns what its tools, hooks, providers and channels start, not what Parley does for it', async () => {
  const fail = (where: string) =>
    setTimeout(() => {
      throw new Error(where);
    }, 1);
  let send: (() => unknown) | undefined;
  let parleyTicks = 0;
  const timers: NodeJS.Timeout[] = [];
  onTestFinished(() => timers.forEach(clearInterval));
  const hooks = createHooks({ log: silentLog, clock: systemClock });
  const { host, problems } = await hosting(
    (api) => {
      send = () => api.agent.send({ message: 'Hi' });
      api.tools.register('look', () =>
        defineTool({
          ...{ name: 'look', description: 'x', parallelSafe: true, replay: 'safe', authority: 'guest' },
          inputSchema: z.object({}),
          execute: async () => {
            fail('tool');
            await send?.();
            return { text: '' };
          },
        }),
      );
      api.hooks.on('agent_end', () => void fail('hook'));
      api.providers.register('wild', () => ({
        id: 'wild',
        async *stream() {
          fail('stream');
          yield { type: 'content_start' } as const;
        },
        send: () => Promise.reject(new Error('unused')),
        model: () => Promise.reject(new Error('unused')) as never,
      }));
    },
    {
      hooks,
      services: () => {
        const noted = async () => {
          // A run that the message begins has such timers.
          timers.push(setInterval(() => parleyTicks++, 1));
          return {} as never;
        };
        const refuse = () => Promise.reject(new Error('unused'));
        const nothing = async function* () {};
        const agent = {
          ...{ wait: refuse, steer: refuse, cancel: refuse, isSessionBusy: refuse, send: noted },
          ...{ isBusy: refuse, isStreaming: refuse, run: nothing, summarize: nothing, events: nothing },
        };
        return {
          store: { get: refuse, list: refuse, commit: refuse },
          agent,
          enqueue: refuse,
        };
      },
    },
  );
  await host.toolsFor(run)[0]?.execute({}, { run } as ToolContext);
  await expect.poll(problems).toMatchObject([expect.stringMatching(/: 1 fault; .*: tool$/)]);
  void hooks.observe('agent_end', {} as never);
  await expect.poll(problems).toMatchObject([expect.stringMatching(/: 2 faults; .*: hook$/)]);
  const stream =
    host
      .provider('wild')?.('x')
      .stream({} as never, new AbortController().signal) ?? [];
  for await (const event of stream) expect(event).toEqual({ type: 'content_start' });
  await expect.poll(problems).toMatchObject([expect.stringMatching(/: 3 faults; .*: stream$/)]);
  await host.close();
  const before = parleyTicks;
  await expect.poll(() => parleyTicks).toBeGreaterThan(before);
});

it('leaves the timers of fetch alone, which serve the whole process', async () => {
  const server = createServer((_, response) => response.end('pong')).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let answer = '';
  const { host, lines } = await hosting(async () => {
    setTimeout(() => undefined, 60_000);
    answer = await (await fetch(`http://127.0.0.1:${port}`)).text();
  });
  await expect.poll(() => answer).toBe('pong');
  await host.close();
  expect(lines).toContainEqual('plugin.timers-stopped {"plugin":"wild","timers":1}');
});
