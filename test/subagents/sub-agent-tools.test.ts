/** The tools for sub-agents, and the run of a sub-agent, on a real store. */

import { describe, expect, it } from 'vitest';
import { agentId } from '#contracts/ids.ts';
import { boundResult } from '../../src/agent/tool-result.ts';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import type { Tool, ToolRun } from '../../src/contracts/tool.ts';
import { createHooks, type Hooks } from '../../src/hooks/hooks.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import { findChild, readChildRun } from '../../src/store/children/child.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { readForkedHistory } from '../../src/store/reads/read-transcript.ts';
import { readWaitingItems } from '../../src/store/reads/read-waiting-items.ts';
import { createSpawnTool } from '../../src/subagents/spawn-tool.ts';
import { createSubagentsTool } from '../../src/subagents/subagents-tool.ts';
import { aRun, someLimits } from '../agent/support/builders.ts';
import { hangsAfter, scriptedModel } from '../agent/support/scripted-model.ts';
import { runDeps, someActiveRuns, untilDone } from '../runs/run-builders.ts';
import { holder, unique } from '../store/builders.ts';
import { aFamilyWorker, limits } from '../store/family.ts';
import { openOwnStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

const agents = ['main', 'clerk'].map((id) => ({
  ...{ id: agentId(id), name: id, workspace: '/nowhere' },
  ...{ tools: { deny: [] }, subagents: {}, reasoning: 'off' as const },
}));

describe('the tools for sub-agents', () => {
  const store = openOwnStore();

  const toolRunOf = ({ runId, sessionId, laneKey, epoch, authority }: ClaimedRun): ToolRun =>
    // The ids come from the store.
    ({ ...aRun, ...{ runId, sessionId, sessionKey: laneKey, epoch, authority } }) as ToolRun;
  const call = (tool: Tool, run: ClaimedRun, input: Record<string, unknown>, callId = unique('call')) =>
    tool.execute(tool.inputSchema.parse(input), {
      ...{ callId, run: toolRunOf(run), signal: new AbortController().signal, update: () => undefined },
    });
  const open = async (over: Partial<typeof limits> = {}, hooks?: Hooks) => {
    const worker = aFamilyWorker(store());
    const { run } = await worker.begin();
    const deps = {
      store: store(),
      agents,
      authority: 'guest' as const,
      models: { names: () => ['demo', 'careful'] },
      limits: { ...limits, ...over },
      hooks,
      start: () => undefined,
      probe: noProbe,
    };
    const spawn = (input: Record<string, unknown>, callId?: string) =>
      call(createSpawnTool(deps, toolRunOf(run)), run, { task: 'look', ...input }, callId);
    const subagents = (input: Record<string, unknown>, by = run) =>
      call(createSubagentsTool(deps, toolRunOf(by)), by, input);
    return { worker, run, spawn, subagents };
  };
  const textOf = (output: Awaited<ReturnType<Tool['execute']>>) => ('text' in output ? output.text : '');
  const idOf = (output: Awaited<ReturnType<Tool['execute']>>): string => JSON.parse(textOf(output)).id;

  it.each([
    ['refuses', () => ({ kind: 'refuse', reason: 'not at night' }) as const, 'Not allowed: not at night'],
    ['fails', () => Promise.reject(new Error('detail')), 'Not allowed: the hook test failed.'],
  ])('starts no sub-agent if subagent_spawning %s', async (_, handler, note) => {
    const hooks = createHooks({ log: silentLog, clock: systemClock });
    hooks.on('subagent_spawning', handler, { owner: 'test' });
    const { spawn } = await open({}, hooks);
    expect(JSON.parse(textOf(await spawn({})))).toEqual({ status: 'refused', reason: 'hook', note });
  });

  it('accepts a sub-agent at once, attaches a repeated call to it, and parks a waiting call', async () => {
    const { worker, spawn } = await open();
    const callId = unique('call');
    const first = JSON.parse(textOf(await spawn({ label: 'one' }, callId)));
    expect(first).toMatchObject({
      status: 'accepted',
      childSessionKey: expect.stringMatching(/^agent:main:sub:1:/),
    });
    expect(JSON.parse(textOf(await spawn({ label: 'one' }, callId)))).toEqual(first);
    expect(await spawn({ wait: true })).toEqual({ parked: { reason: 'a sub-agent' } });
    const child = await store().read(findChild, { childId: first.id });
    expect(child).toMatchObject({ label: 'one', mode: 'announce', agentId: 'main', depth: 1 });
    expect(await worker.claimRun(first.childSessionKey)).toMatchObject({ runId: first.runId });
    expect(await store().read(readChildRun, { sessionId: first.id })).toMatchObject({
      role: { depth: 1, profile: 'main', deniedTools: expect.arrayContaining(['agents_list']) },
      fork: undefined,
    });
  });

  it.each([
    ['main', 'main'],
    ['coder', 'main'],
    ['task', 'task'],
  ])('spawns a sub-agent of type %s with profile %s', async (name, profile) => {
    const { spawn } = await open();
    const sessionId = idOf(await spawn({ profile: name }));
    expect(await store().read(readChildRun, { sessionId })).toMatchObject({ role: { profile } });
  });

  it.each([
    ['too_many_children', { children: 0 }, {}],
    ['tree_full', { nodes: 0 }, {}],
    ['tree_exhausted', { lifetime: 0 }, {}],
    ['tree_out_of_time', { treeMs: 0 }, {}],
    ['too_deep', { depth: 0 }, {}],
    ['agent_not_allowed', {}, { agentId: 'clerk' }],
    ['model_not_known', {}, { model: 'constructor' }],
  ])(
    'returns the refusal %s as a result that names the limit and an alternative',
    async (reason, over, input) => {
      const { spawn } = await open(over);
      const refused = JSON.parse(textOf(await spawn(input)));
      expect(refused).toMatchObject({
        status: 'refused',
        reason,
        limit: { agent_not_allowed: 1, model_not_known: 2 }[reason] ?? 0,
        note: expect.stringMatching(/\w{3}.*\.$/),
      });
    },
  );

  it('gives a sub-agent the requested model from its first run on', async () => {
    const { worker, spawn } = await open();
    const modelOf = async (input: Record<string, unknown>) => {
      const child = await store().read(findChild, { childId: idOf(await spawn(input)) });
      return (await worker.claimRun(child?.laneKey ?? '')).model;
    };
    expect([await modelOf({ model: 'careful' }), await modelOf({})]).toEqual(['careful', 'demo']);
  });

  it("lists, steers, shows and stops the run's own sub-agents, and no others", async () => {
    const { worker, spawn, subagents } = await open();
    const id = idOf(await spawn({ label: 'one' }));
    const [listed] = JSON.parse(textOf(await subagents({ action: 'list' })));
    expect(listed).toMatchObject({ id, label: 'one', state: 'queued' });
    expect(textOf(await subagents({ action: 'log', id }))).toBe('It has not begun.');
    expect(textOf(await subagents({ action: 'steer', id: 'one', text: 'look left' }))).toContain('next step');
    await expect(subagents({ action: 'steer', id })).rejects.toThrow('needs a text');
    const { run: stranger } = await worker.begin();
    await expect(subagents({ action: 'stop', id }, stranger)).rejects.toThrow(`no sub-agent ${id}`);
    expect(textOf(await subagents({ action: 'stop', id }))).toContain('Stopped');
    expect(textOf(await subagents({ action: 'stop', id }))).toContain('ended already');
    expect(await store().read(findChild, { childId: id })).toMatchObject({ status: 'stopped' });
  });

  it("shows a sub-agent's latest words, however long its task was", async () => {
    const { worker, spawn, subagents } = await open();
    const id = idOf(await spawn({ task: 'ä'.repeat(31_000) }));
    const child = await store().read(findChild, { childId: id });
    await worker.answer(await worker.claimRun(child?.laneKey ?? ''), 'It is under the stairs.');
    const output = { text: textOf(await subagents({ action: 'log', id })) };
    expect(boundResult({ output, isError: false }).output.text).toContain('under the stairs');
  });

  it('refuses to touch a sub-agent with more authority than the person who is answered', async () => {
    const { run, spawn, subagents } = await open();
    const id = idOf(await spawn({ label: 'one' }));
    const asGuest = (input: Record<string, unknown>) => subagents(input, { ...run, authority: 'guest' });
    for (const action of ['log', 'stop', 'steer'])
      expect(textOf(await asGuest({ action, id, text: 'go on' }))).toContain(
        'with more rights than the person',
      );
    expect(JSON.parse(textOf(await asGuest({ action: 'list' })))).toMatchObject([{ id, state: 'queued' }]);
    const items = await store().read(readWaitingItems, { laneKey: `agent:main:sub:1:${id}@${run.laneKey}` });
    expect(items).toHaveLength(1);
  });

  it('gives a sub-agent no more time than requested, and reports the timeout', async () => {
    const { worker, spawn } = await open();
    const id = idOf(await spawn({ timeoutSeconds: 1 }));
    const child = await store().read(findChild, { childId: id });
    const run = await worker.claimRun(child?.laneKey ?? '');
    const active = someActiveRuns(store(), holder);
    const deps = runDeps(store(), { active, model: scriptedModel(hangsAfter([])), tools: [] });
    const patient = { ...deps, clock: systemClock, settings: { ...deps.settings, limits: patience } };
    await executeRun(patient, run, untilDone());
    await active.close();
    expect(await store().read(findChild, { childId: id })).toMatchObject({
      state: 'done',
      status: 'timed-out',
    });
  });

  it('shows a fork of a fork what was said in both before it, and nothing later', async () => {
    const worker = aFamilyWorker(store());
    const { run } = await worker.begin();
    const fork = { over: { context: 'fork' } } as const;
    const first = await worker.spawnOne(run, { ...fork, callId: 'a' });
    await worker.answer(run, 'said after the fork');
    const second = await worker.spawnOne(await worker.claimRun(first.laneKey), { ...fork, callId: 'b' });
    const { fork: point } = await store().read(readChildRun, { sessionId: second.id });
    const shown = point ? await store().read(readForkedHistory, point) : [];
    const texts = shown.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'text' ? part.data.text : [])),
    );
    expect(texts).toEqual(['go', 'task of a']);
  });
});

/** Limits that are only reached after a sub-agent's own deadline. */
const patience = { ...someLimits, modelIdleMs: 600_000, turns: 10 };
