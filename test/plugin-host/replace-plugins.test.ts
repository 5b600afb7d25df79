import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { channelId } from '#contracts/ids.ts';
import type { PluginApi } from '#contracts/plugin.ts';
import { definePlugin, z } from '#contracts/plugin-kit.ts';
import { defineTool, type ToolContext, type ToolRun } from '#contracts/tool.ts';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { createPluginHost } from '../../src/plugin-host/plugin-host.ts';
import type { LoadedDefinition } from '../../src/plugin-host/set-up-plugin.ts';
import { nothingToSettle } from '../support/nothing-to-settle.ts';
import { recordingLog } from '../support/silent-log.ts';

function aHost() {
  const { log, lines } = recordingLog();
  const hooks = createHooks({ log, clock: systemClock });
  const host = createPluginHost({ log, settle: nothingToSettle, hooks });
  onTestFinished(host.close);
  return { host, hooks, lines };
}

/** A plugin from outside; each call makes another version of it. */
function aPlugin(id: string, setup: (api: PluginApi) => unknown = () => undefined, config: unknown = {}) {
  const definition = definePlugin<unknown>({
    id,
    configSchema: z.unknown(),
    setup: (api) => setup(api) as undefined,
  });
  return { definition, config, isOutside: true } as LoadedDefinition;
}

const withTool =
  (name: string, execute: () => Promise<string> = async () => name) =>
  (api: PluginApi): void =>
    api.tools.register(name, () =>
      defineTool({
        ...{ name, description: name, parallelSafe: true, replay: 'safe', authority: 'guest' },
        inputSchema: z.object({}),
        execute: async () => ({ text: await execute() }),
      }),
    );

// The factories of these tests read nothing of it.
const run = { runId: 'r1' } as ToolRun;
const context = { run, update: () => undefined } as unknown as ToolContext;

it('sets up what is new, leaves what is unchanged alone, and ends what is gone', async () => {
  const { host } = aHost();
  const said: string[] = [];
  const noting = (id: string, config?: unknown) =>
    aPlugin(
      id,
      () => {
        said.push(`${id} begins`);
        return () => said.push(`${id} ends`);
      },
      config,
    );
  const [one, two, three] = [noting('one'), noting('two', { key: 'a' }), noting('three')];
  expect(await host.replace([one, two])).toEqual([
    { plugin: 'one', kind: 'loaded' },
    { plugin: 'two', kind: 'loaded' },
  ]);
  // As it is read again: equal, but not the same objects.
  expect(await host.replace([{ ...two, config: { key: 'a' } }, three])).toEqual([
    { plugin: 'three', kind: 'loaded' },
    { plugin: 'one', kind: 'removed' },
  ]);
  await expect.poll(() => said).toEqual(['one begins', 'two begins', 'three begins', 'one ends']);
  expect(await host.replace([{ ...two, config: { key: 'b' } }, three])).toEqual([
    { plugin: 'two', kind: 'loaded' },
  ]);
  await expect.poll(() => said.slice(4)).toEqual(['two begins', 'two ends']);
  expect(host.reports().map(({ plugin }) => plugin)).toEqual(['two', 'three']);
});

it('disposes of a plugin only after its running calls, and calls it no more', async () => {
  const { host } = aHost();
  const call = Promise.withResolvers<string>();
  let hasEnded = false;
  let signal: AbortSignal | undefined;
  await host.replace([
    aPlugin('slow', (api) => {
      signal = api.signal;
      withTool('wait', () => call.promise)(api);
      return () => {
        hasEnded = true;
      };
    }),
  ]);
  const [tool] = host.toolsFor(run);
  const running = tool?.execute({}, context);
  await host.replace([]);
  expect(host.toolsFor(run)).toEqual([]);
  await expect(tool?.execute({}, context)).rejects.toThrow('slow has just been changed or removed');
  expect([hasEnded, signal?.aborted]).toEqual([false, false]);
  call.resolve('done');
  expect(await running).toEqual({ text: 'done' });
  await expect.poll(() => [hasEnded, signal?.aborted]).toEqual([true, true]);
});

it('ends a plugin with a call that never does when Parley stops', async () => {
  const { host } = aHost();
  let hasEnded = false;
  await host.replace([
    aPlugin('stuck', (api) => {
      withTool('wait', () => new Promise(() => undefined))(api);
      return () => {
        hasEnded = true;
      };
    }),
  ]);
  void host.toolsFor(run)[0]?.execute({}, context);
  await host.replace([]);
  expect(hasEnded).toBe(false);
  await host.close();
  expect(hasEnded).toBe(true);
});

it('leaves the others working when one fails, and names it until it loads', async () => {
  const { host, lines } = aHost();
  const fine = aPlugin('fine', withTool('fine'));
  await host.replace([fine, aPlugin('weather', withTool('forecast'))]);
  const broken = aPlugin('weather', () => {
    throw new Error('no luck');
  });
  const unread = { plugin: 'tides', problem: 'It is off: its files have changed.' };
  const problem = `Plugin "weather" didn't start: no luck`;
  expect(await host.replace([broken, unread, fine])).toEqual([
    { plugin: 'weather', kind: 'failed', problem },
    { ...unread, kind: 'failed' },
  ]);
  expect(host.toolsFor(run).map(({ name }) => name)).toEqual(['fine']);
  expect(host.reports()).toMatchObject([
    { kind: 'failed', plugin: 'weather', problem },
    { kind: 'failed', plugin: 'tides' },
    { kind: 'loaded', plugin: 'fine' },
  ]);
  expect(lines.filter((line) => line.startsWith('plugin.failed'))).toHaveLength(2);
  await host.replace([aPlugin('weather', withTool('forecast')), fine]);
  expect(host.toolsFor(run).map(({ name }) => name)).toEqual(['forecast', 'fine']);
});

it('takes up hooks, commands, routes, schedules and providers at once, each of one version', async () => {
  const { host, hooks } = aHost();
  let ticks = 0;
  const everything = (version: string) =>
    aPlugin('all', (api) => {
      api.hooks.on('message_sending', ({ text }) => ({ kind: 'rewrite', text: `${text} ${version}` }));
      api.commands.register({ name: 'look', description: version, run: () => ({}) });
      api.routes.register({ method: 'GET', path: 'look', handle: () => ({ body: version }) });
      api.providers.register('all', () => ({ id: version }) as never);
      api.schedules.every('tick', { everyMs: 1000 }, () => {
        ticks += 1;
      });
    });
  const seen = async () => ({
    hook: (await hooks.decide('message_sending', { text: 'Hi' } as never)).event.text,
    commands: host.commands().map(({ part }) => part.description),
    route: (await host.route('all', 'GET', 'look')?.handle({} as never))?.body,
    provider: host.provider('all')?.('x').id,
  });
  await host.replace([everything('one')]);
  expect(await seen()).toEqual({ hook: 'Hi one', commands: ['one'], route: 'one', provider: 'one' });
  await host.replace([everything('two')]);
  expect(await seen()).toEqual({ hook: 'Hi two', commands: ['two'], route: 'two', provider: 'two' });
  await host.replace([]);
  expect(await seen()).toEqual({ hook: 'Hi', commands: [], route: undefined, provider: undefined });
  await delay(1_100);
  expect(ticks).toBe(0);
});

it('has nothing of a new version in force until all plugins are set up', async () => {
  const { host, hooks } = aHost();
  const setUp = Promise.withResolvers<void>();
  const hooked = aPlugin('hooked', (api) => {
    api.hooks.on('message_sending', () => ({ kind: 'cancel', reason: 'no' }));
  });
  const replacing = host.replace([hooked, aPlugin('slow', () => setUp.promise)]);
  await delay(5);
  expect(hooks.has('message_sending')).toBe(false);
  setUp.resolve();
  await replacing;
  expect(hooks.has('message_sending')).toBe(true);
});

it('lets a name go from one plugin to another in one reload', async () => {
  const { host } = aHost();
  await host.replace([aPlugin('one', withTool('look')), aPlugin('two')]);
  await host.replace([aPlugin('one'), aPlugin('two', withTool('look'))]);
  expect(host.reports()).toMatchObject([{ kind: 'loaded' }, { kind: 'loaded', tools: ['look'] }]);
});

it('tries a new version again that needs what only the earlier one had', async () => {
  const { host } = aHost();
  let isTaken = false;
  const exclusive = () =>
    aPlugin('exclusive', (api) => {
      if (isTaken) throw new Error('the port is taken');
      isTaken = true;
      withTool('look')(api);
      return () => {
        isTaken = false;
      };
    });
  await host.replace([exclusive()]);
  expect(await host.replace([exclusive()])).toEqual([{ plugin: 'exclusive', kind: 'loaded' }]);
  expect(host.toolsFor(run)).toHaveLength(1);
});

it('changes no plugin with a channel before a restart, and says so', async () => {
  const { host } = aHost();
  const network = (api: PluginApi) =>
    api.channels.register({ id: channelId('network') } as Parameters<PluginApi['channels']['register']>[0]);
  const restart = /begins and ends only with Parley\. Restart Parley/;
  await host.load([aPlugin('network', network)]);
  for (const entries of [[aPlugin('network', network)], [aPlugin('network')], []])
    expect(await host.replace(entries)).toMatchObject([
      { plugin: 'network', kind: 'waiting', problem: expect.stringMatching(restart) },
    ]);
  expect(host.channels()).toHaveLength(1);
  expect(host.reports()).toMatchObject([{ plugin: 'network', finding: { result: 'warning' } }]);
  const added = aHost();
  expect(await added.host.replace([aPlugin('network', network)])).toMatchObject([
    { plugin: 'network', kind: 'failed', problem: expect.stringMatching(restart) },
  ]);
  expect(added.host.channels()).toEqual([]);
});

it('keeps the version that runs if only a restart can load the new one', async () => {
  const { host } = aHost();
  await host.replace([aPlugin('old', withTool('look'))]);
  const waits = { plugin: 'old', problem: 'a.cjs has changed.', waits: true } as const;
  expect(await host.replace([waits])).toMatchObject([{ plugin: 'old', kind: 'waiting' }]);
  expect(host.toolsFor(run)).toHaveLength(1);
});

it('forgets the faults of an earlier version', async () => {
  const { host } = aHost();
  await host.replace([aPlugin('wild')]);
  host.noteFault('wild', 'route a', new Error('no luck'));
  expect(host.reports()).toMatchObject([{ finding: { result: 'warning' } }]);
  await host.replace([aPlugin('wild')]);
  expect(host.reports()).toEqual([{ kind: 'loaded', plugin: 'wild', tools: [] }]);
});
