import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { accountId, agentId, channelId, conversationId, runId, sessionId } from '#contracts/ids.ts';
import type { PluginDefinition, PluginFinding } from '#contracts/plugin.ts';
import { formatSessionKey } from '#contracts/session-key.ts';
import { defineTool, type Tool, type ToolRun } from '#contracts/tool.ts';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { createHooks } from '../../src/hooks/hooks.ts';
import { createPluginHost, type PluginHostDeps } from '../../src/plugin-host/plugin-host.ts';
import type { LoadedDefinition } from '../../src/plugin-host/set-up-plugin.ts';
import { noHooks } from '../support/no-hooks.ts';
import { nothingToSettle } from '../support/nothing-to-settle.ts';
import { recordingLog, silentLog } from '../support/silent-log.ts';

const [account, channel, group] = [accountId('77'), channelId('net'), conversationId('-1')];

function aRun(changes: Partial<ToolRun> = {}): ToolRun {
  const agent = agentId('main');
  return {
    runId: runId('r1'),
    sessionId: sessionId('s1'),
    sessionKey: formatSessionKey({ kind: 'group', agent, account, channel, group }),
    agentId: agent,
    route: { channel, account, conversation: group },
    authority: 'owner',
    workspace: '/nowhere',
    epoch: 1,
    ...changes,
  };
}

function aTool(name: string): Tool {
  return defineTool({
    name,
    description: name,
    inputSchema: z.object({}),
    parallelSafe: true,
    replay: 'safe',
    authority: 'guest',
    execute: async () => ({ text: name }),
  });
}

/** Records what is logged, so that a test can read it. */
function aLog(): PluginHostDeps & { readonly lines: string[] } {
  return { ...recordingLog(), settle: nothingToSettle, hooks: noHooks };
}

function aPlugin(id: string, tools: readonly string[], onDispose = () => {}): LoadedDefinition {
  const definition: PluginDefinition = {
    id,
    configSchema: z.unknown(),
    setup(api) {
      for (const name of tools) api.tools.register(name, () => aTool(name));
      return onDispose;
    },
  };
  return { definition, config: {} };
}

const names = (tools: readonly Tool[]) => tools.map(({ name }) => name);

describe('the plugin host', () => {
  it('offers tools in the order of plugins and registrations', async () => {
    const host = createPluginHost(aLog());
    const reports = await host.load([aPlugin('one', ['b', 'a']), aPlugin('two', ['c'])]);
    expect(reports).toEqual([
      { kind: 'loaded', plugin: 'one', tools: ['b', 'a'] },
      { kind: 'loaded', plugin: 'two', tools: ['c'] },
    ]);
    expect(names(host.toolsFor(aRun()))).toEqual(['b', 'a', 'c']);
  });

  it('gives a plugin its configuration as its schema parses it', async () => {
    const seen: unknown[] = [];
    const definition: PluginDefinition<{ readonly limit: number }> = {
      id: 'configured',
      configSchema: z.strictObject({ limit: z.int().default(7) }),
      setup(_, config) {
        seen.push(config);
        return () => {};
      },
    };
    await createPluginHost(aLog()).load([{ definition, config: {} }]);
    expect(seen).toEqual([{ limit: 7 }]);
  });

  it('names a plugin with a wrong configuration, skips it and continues', async () => {
    let setups = 0;
    const definition: PluginDefinition<{ readonly limit: number }> = {
      id: 'strict',
      configSchema: z.strictObject({ limit: z.int() }),
      setup() {
        setups++;
        return () => {};
      },
    };
    const host = createPluginHost(aLog());
    const [strict, other] = await host.load([
      { definition, config: { limit: 'x' } },
      aPlugin('other', ['a']),
    ]);
    expect(strict).toMatchObject({ kind: 'failed', plugin: 'strict' });
    expect(strict?.kind === 'failed' && strict.problem).toMatch(/plugin "strict" isn't valid[\s\S]*limit/);
    expect(setups).toBe(0);
    expect(other?.kind).toBe('loaded');
  });

  it('names a plugin that fails in setup, drops its tools and continues', async () => {
    const { log, lines } = aLog();
    const definition: PluginDefinition = {
      id: 'broken',
      configSchema: z.unknown(),
      setup(api) {
        api.tools.register('half', () => aTool('half'));
        throw new Error('no disk');
      },
    };
    const host = createPluginHost({ log, settle: nothingToSettle, hooks: noHooks });
    const [broken] = await host.load([{ definition, config: {} }, aPlugin('other', ['a'])]);
    expect(broken).toEqual({
      kind: 'failed',
      plugin: 'broken',
      problem: `Plugin "broken" didn't start: no disk`,
    });
    expect(names(host.toolsFor(aRun()))).toEqual(['a']);
    expect(lines.some((line) => line.startsWith('plugin.failed') && line.includes('broken'))).toBe(true);
  });

  it('withholds the tools of a plugin until its check is over, and reports what it found', async () => {
    const { promise, resolve } = Promise.withResolvers<PluginFinding | undefined>();
    const { definition } = aPlugin('needy', ['a']);
    const host = createPluginHost(aLog());
    const checked = { ...definition, check: () => promise };
    const reports = await host.load([{ definition: checked, config: {} }, aPlugin('other', ['b'])]);
    expect(reports[0]).toEqual({ kind: 'loaded', plugin: 'needy', tools: ['a'] });
    expect(names(host.toolsFor(aRun()))).toEqual(['b']);
    resolve({ result: 'ok', detail: 'it works' });
    await host.checked();
    expect(names(host.toolsFor(aRun()))).toEqual(['a', 'b']);
    expect(host.reports()[0]).toMatchObject({ plugin: 'needy', finding: { result: 'ok' } });
  });

  it('never offers the tools of a plugin whose check fails, and says why', async () => {
    const host = createPluginHost(aLog());
    const failing = async (): Promise<PluginFinding> => ({
      result: 'failed',
      detail: 'no disk',
      fix: 'buy one',
    });
    const { definition } = aPlugin('needy', ['a']);
    const broken = {
      ...aPlugin('broken', ['b']).definition,
      check: () => Promise.reject(new Error('no air')),
    };
    await host.load([
      { definition: { ...definition, check: failing }, config: {} },
      { definition: broken, config: {} },
    ]);
    await host.checked();
    expect(names(host.toolsFor(aRun()))).toEqual([]);
    expect(host.reports()).toMatchObject([
      { plugin: 'needy', finding: { result: 'failed', detail: 'no disk', fix: 'buy one' } },
      { plugin: 'broken', finding: { result: 'failed', detail: 'no air' } },
    ]);
  });

  it('refuses a second tool of one name, names both plugins and disposes of the second', async () => {
    const disposed: string[] = [];
    const host = createPluginHost(aLog());
    const [, second] = await host.load([
      aPlugin('one', ['read']),
      aPlugin('two', ['write', 'read'], () => disposed.push('two')),
    ]);
    expect(second?.kind === 'failed' && second.problem).toBe(
      'Tool "read" comes from plugin "one" and plugin "two". Turn one of them off.',
    );
    expect(names(host.toolsFor(aRun()))).toEqual(['read']);
    expect(disposed).toEqual(['two']);
  });

  it('refuses a plugin that registers a tool twice or is listed twice', async () => {
    const host = createPluginHost(aLog());
    const reports = await host.load([
      aPlugin('twice', ['a', 'a']),
      aPlugin('one', ['b']),
      aPlugin('one', ['c']),
    ]);
    expect(reports.map(({ kind }) => kind)).toEqual(['failed', 'loaded', 'failed']);
    expect(names(host.toolsFor(aRun()))).toEqual(['b']);
  });

  it('leaves out tools that do not fit the run or whose factory fails', async () => {
    const { log, lines } = aLog();
    const definition: PluginDefinition = {
      id: 'odd',
      configSchema: z.unknown(),
      setup(api) {
        api.tools.register('owners-only', (run) =>
          run.authority === 'owner' ? aTool('owners-only') : undefined,
        );
        api.tools.register('throws', () => {
          throw new Error('boom');
        });
        api.tools.register('alias', () => aTool('read'));
        return () => {};
      },
    };
    const host = createPluginHost({ log, settle: nothingToSettle, hooks: noHooks });
    await host.load([{ definition, config: {} }]);
    expect(names(host.toolsFor(aRun()))).toEqual(['owners-only']);
    expect(host.toolsFor(aRun({ authority: 'guest' }))).toEqual([]);
    expect(lines.filter((line) => line.startsWith('plugin.tool-failed')).length).toBe(4);
  });

  it('refuses registrations after setup', async () => {
    let late: (() => void) | undefined;
    const definition: PluginDefinition = {
      id: 'late',
      configSchema: z.unknown(),
      setup(api) {
        late = () => api.tools.register('late', () => aTool('late'));
        return () => {};
      },
    };
    const host = createPluginHost(aLog());
    await host.load([{ definition, config: {} }]);
    expect(() => late?.()).toThrow('registered after setup');
    expect(host.toolsFor(aRun())).toEqual([]);
  });

  it('removes the hooks of a plugin that stops or doesn’t start', async () => {
    const hooks = createHooks({ log: silentLog, clock: systemClock });
    const aHooked = (id: string, failure?: string): LoadedDefinition => ({
      config: {},
      definition: {
        id,
        configSchema: z.unknown(),
        setup(api) {
          api.hooks.on('before_tool_call', () => ({ kind: 'block', reason: 'no' }));
          if (failure !== undefined) throw new Error(failure);
          return () => {};
        },
      },
    });
    const host = createPluginHost({ ...aLog(), hooks });
    await host.load([aHooked('broken', 'no disk')]);
    expect(hooks.has('before_tool_call')).toBe(false);
    await host.load([aHooked('works')]);
    expect(hooks.states()).toMatchObject([{ event: 'before_tool_call', owner: 'works' }]);
    await host.close();
    expect(hooks.has('before_tool_call')).toBe(false);
  });

  it('disposes of plugins once and in reverse order, even if one fails', async () => {
    const { log, lines } = aLog();
    const disposed: string[] = [];
    const host = createPluginHost({ log, settle: nothingToSettle, hooks: noHooks });
    await host.load([
      aPlugin('one', [], () => disposed.push('one')),
      aPlugin('two', ['a'], () => {
        throw new Error('stuck');
      }),
      aPlugin('three', [], () => disposed.push('three')),
    ]);
    await host.close();
    await host.close();
    expect(disposed).toEqual(['three', 'one']);
    expect(host.toolsFor(aRun())).toEqual([]);
    expect(lines.some((line) => line.startsWith('plugin.dispose-failed') && line.includes('two'))).toBe(true);
  });
});
