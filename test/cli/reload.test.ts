import { expect, it } from 'vitest';
import { agentId } from '#contracts/ids.ts';
import { createReloader, notifyOthers, reloadSignal, signalsOf } from '../../src/cli/reload.ts';
import type { Config } from '../../src/config/config.ts';
import { compareSettings } from '../../src/config/live-settings.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import type { DiskCalls } from '../../src/contracts/workspace-reader.ts';
import { createInboundPolicy } from '../../src/inbound/inbound-policy.ts';
import { settingsApplier } from '../../src/roles/apply-settings.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { silentLog } from '../support/silent-log.ts';

const base = loadConfig({ values: {}, unknown: [] }, '/nowhere');
const disks: DiskCalls = { run: (_, call) => call(), finish: (_, call) => call() };
const withOwner = (owner: string) =>
  loadConfig({ values: { PARLEY_OWNERS: owner }, unknown: [] }, '/nowhere');

it('says which changed settings apply now and which need a restart', () => {
  const after: Config = {
    ...base,
    port: 1,
    logLevel: 'debug',
    groups: { ...base.groups, contextLimit: 7, requireMention: false },
  };
  expect(compareSettings(base, after)).toEqual({
    applied: ['logLevel', 'groups.requireMention'],
    needsRestart: ['port', 'groups.contextLimit'],
  });
  expect(compareSettings(base, { ...base, configPath: '/elsewhere' })).toEqual({
    applied: [],
    needsRestart: [],
  });
});

it('applies nothing from an invalid file and says what is wrong', async () => {
  const applied: Config[] = [];
  let next: () => Config = () => withOwner('net:1');
  const reload = createReloader({
    config: base,
    log: silentLog,
    disks,
    load: async () => next(),
    apply: async (config) => {
      applied.push(config);
      return [];
    },
  });
  expect(await reload()).toEqual({ kind: 'applied', applied: ['owners'], needsRestart: [], plugins: [] });
  expect(await reload()).toEqual({ kind: 'applied', applied: [], needsRestart: [], plugins: [] });
  next = () => {
    throw new ParleyError('config_invalid', 'port: 70000 is too large');
  };
  expect(await reload()).toEqual({ kind: 'refused', problem: 'port: 70000 is too large' });
  expect(applied).toHaveLength(2);
});

it('keeps the earlier bindings until the agents that the new ones need are running', async () => {
  const agent = { ...base.agents[0], id: agentId('clerk') } as Config['agents'][number];
  const binding = { agent: agentId('clerk'), channel: 'telegram' };
  const applied: Config[] = [];
  let next: Config = { ...base, agents: [...base.agents, agent], bindings: [binding], joinMs: 5 };
  const reload = createReloader({
    config: base,
    log: silentLog,
    disks,
    load: async () => next,
    apply: async (config) => {
      applied.push(config);
      return [];
    },
  });
  const waits = { kind: 'applied', needsRestart: ['agents', 'bindings'], plugins: [] };
  expect(await reload()).toEqual({ ...waits, applied: ['joinMs'] });
  expect(await reload()).toEqual({ ...waits, applied: [] });
  next = { ...next, bindings: [{ agent: agentId('main'), channel: 'telegram' }] };
  expect(await reload()).toEqual({
    kind: 'applied',
    applied: ['bindings'],
    needsRestart: ['agents'],
    plugins: [],
  });
  expect(applied.map(({ bindings }) => bindings)).toEqual([[], [], next.bindings]);
});

it("keeps the settings while their file's disk does not answer", async () => {
  let loads = 0;
  const reload = createReloader({
    config: { ...base, configPath: '/drive/parley.config.json' },
    log: silentLog,
    disks: { ...disks, run: () => Promise.reject(new Error('no answer')) },
    load: async () => {
      loads += 1;
      return base;
    },
    apply: async () => [],
  });
  const problem = expect.stringContaining("/drive/parley.config.json: is on a disk that doesn't answer");
  expect(await reload()).toEqual({ kind: 'refused', problem });
  expect(loads).toBe(0);
});

it('applies concurrent reloads in order, so that the newest settings win', async () => {
  const loads = [5, 6].map((joinMs) => ({ ...Promise.withResolvers<void>(), joinMs }));
  const applied: number[] = [];
  let begun = 0;
  const reload = createReloader({
    config: base,
    log: silentLog,
    disks,
    load: async () => {
      const load = loads[begun++];
      await load?.promise;
      return { ...base, joinMs: load?.joinMs ?? 0 };
    },
    apply: async ({ joinMs }) => {
      applied.push(joinMs);
      return [];
    },
  });
  const both = [reload(), reload()];
  // The later load finishes first.
  for (const { resolve } of loads.toReversed()) resolve();
  await Promise.all(both);
  expect(applied).toEqual([5, 6]);
});

it('replaces the rules for everybody who holds the policy', () => {
  const texts = textsFor('en');
  const policy = createInboundPolicy(base, texts);
  const { rateLimit } = policy;
  const front = { owners: ['net:0'], allowedHosts: [] as string[] };
  // The applier only touches these lists.
  const apply = settingsApplier({ config: base, texts }, { policy, gatewayRole: front as never });
  apply({ ...withOwner('net:1'), allowedHosts: ['parley.home'], dmScope: 'main' });
  expect(policy.access.owners.has('net:1')).toBe(true);
  expect(front).toEqual({ owners: ['web:owner', 'terminal:owner', 'net:1'], allowedHosts: ['parley.home'] });
  expect(policy.rateLimit).toBe(rateLimit);
  expect(policy.dmScope).toBe(base.dmScope);
  apply({ ...base, rateLimit: { perSenderPerMinute: 3 } });
  expect(policy.rateLimit).not.toBe(rateLimit);
});

it('signals every other process, whatever its role, and names those to restart', () => {
  const told: [number, NodeJS.Signals][] = [];
  const processes = [
    { pid: 1, role: 'gateway' },
    { pid: 2, role: 'gateway' },
    { pid: 3, role: 'worker' },
    { pid: 4, role: 'worker' },
    { pid: 5, role: 'worker' },
  ] as const;
  const failures: Readonly<Record<number, string>> = { 4: 'EPERM', 5: 'ESRCH' };
  const lines = notifyOthers(processes, 1, (pid, signal) => {
    const code = failures[pid];
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    told.push([pid, signal]);
  });
  expect(told).toEqual([
    [2, reloadSignal],
    [3, reloadSignal],
  ]);
  expect(lines).toEqual([
    'Told gateway 2 to reload; its log shows what it applied.',
    'Told worker 3 to reload; its log shows what it applied.',
    "worker 4 couldn't be told to reload (EPERM), so it keeps its earlier settings. Restart it.",
    'worker 5 has ended.',
  ]);
});

it.each([true, false])(
  'reloads by a signal that never ends a process (in a terminal: %s)',
  (isInTerminal) => {
    const { stop, reload } = signalsOf(isInTerminal);
    expect(reload).toContain(reloadSignal);
    expect(stop).not.toContain(reloadSignal);
    // SIGHUP is also sent when the terminal closes.
    expect(stop.includes('SIGHUP')).toBe(isInTerminal);
    expect(reload.filter((signal) => stop.includes(signal))).toEqual([]);
  },
);
