/** The tools for delegation, on a real store. */

import { describe, expect, it } from 'vitest';
import { agentId } from '#contracts/ids.ts';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { Tool, ToolRun } from '../../src/contracts/tool.ts';
import { createHooks, type Hooks } from '../../src/hooks/hooks.ts';
import type { Effects } from '../../src/store/base/effects.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { readTasks } from '../../src/store/reads/read-tasks.ts';
import { agentRoster } from '../../src/subagents/agent-roster.ts';
import { createAgentsListTool } from '../../src/subagents/agents-list-tool.ts';
import { createDelegateTool } from '../../src/subagents/delegate-tool.ts';
import { createTasksTool } from '../../src/subagents/tasks-tool.ts';
import { aRun } from '../agent/support/builders.ts';
import { unique } from '../store/builders.ts';
import { aCoordinator } from '../store/delegation/a-coordinator.ts';
import { aFamilyWorker } from '../store/family.ts';
import { openOwnStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

const agents = ['main', 'clerk', 'cook', 'spy'].map((id) => ({
  ...{ id: agentId(id), name: id, workspace: '/nowhere' },
  ...{ tools: { deny: [] }, reasoning: 'off' as const },
  subagents: { allowAgents: ['main', 'clerk', 'cook'] },
  ...(id === 'clerk' && { specialty: 'Knows\nthe files.', capabilities: ['read invoices', 'find dates'] }),
}));
const limits = { depth: 5, nodes: 200, treeMs: 3_600_000 };

const node = (id: string, dependsOn: readonly string[] = [], over: object = {}) => ({
  ...{ id, agent: 'clerk', instructions: `do ${id}`, dependsOn },
  ...over,
});
const ask = (...subtasks: readonly unknown[]) => ({ title: 'a task', subtasks });
const diamond = ask(node('a'), node('b', ['a']), node('c', ['a']), node('d', ['b', 'c'], { agent: 'self' }));

describe('the tools for delegation', () => {
  const store = openOwnStore();

  const toolRunOf = ({ runId, sessionId, laneKey, epoch, authority }: ClaimedRun): ToolRun =>
    // The ids come from the store.
    ({ ...aRun, ...{ runId, sessionId, sessionKey: laneKey, epoch, authority } }) as ToolRun;
  /** Calls the tool with arguments as a model writes them. */
  const call = async (tool: Tool, run: ClaimedRun, raw: unknown, callId = unique('call')) => {
    const input = tool.inputSchema.parse(tool.prepareArguments?.(raw) ?? raw);
    const ctx = { callId, run: toolRunOf(run), signal: new AbortController().signal };
    const output = await tool.execute(input, { ...ctx, update: () => undefined });
    if (!('text' in output)) throw new Error('test error: the call was parked');
    return { ...output, value: output.text.startsWith('{') ? JSON.parse(output.text) : undefined };
  };
  const open = async (over: { hooks?: Hooks; limits?: Partial<typeof limits> } = {}) => {
    const { run, lane } = await aFamilyWorker(store()).begin();
    const started: Effects[] = [];
    const start = (effects: Effects) => void started.push(effects);
    const deps = { store: store(), agents, authority: 'guest' as const, hooks: over.hooks, start };
    const tool = createDelegateTool({ ...deps, limits: { ...limits, ...over.limits } }, toolRunOf(run));
    return {
      ...{ run, tool, started, worker: aCoordinator(store()) },
      delegate: async (raw: unknown, callId?: string) => (await call(tool, run, raw, callId)).value,
      tasks: (raw: unknown, by = run) =>
        call(createTasksTool({ store: store(), start }, toolRunOf(by)), by, raw),
      stored: () => store().read(readTasks, { laneKeys: [lane.key], limit: 10 }),
    };
  };

  it('stores a graph with what begins at once, and says how to end the turn', async () => {
    const { delegate, stored, started } = await open();
    const answer = await delegate(diamond);
    expect(answer).toEqual({
      ...{ status: 'accepted', task: expect.any(String), dispatched: ['a'], waiting: ['b', 'c', 'd'] },
      note: expect.stringContaining('NO_REPLY'),
    });
    expect(await stored()).toMatchObject([
      {
        ...{ id: answer.task, title: 'a task', agent: 'main', state: 'executing' },
        subtasks: [
          { id: 'a', agent: 'clerk', state: 'dispatched', onFailure: 'fail' },
          { id: 'b', state: 'pending', dependsOn: ['a'] },
          { id: 'c', state: 'pending', dependsOn: ['a'] },
          { id: 'd', agent: 'self', state: 'pending', dependsOn: ['b', 'c'] },
        ],
      },
    ]);
    expect(started.flatMap(({ taskPoints }) => taskPoints)).toEqual(['task-dispatched']);
  });

  it('finds the task of a call that is repeated, and makes no other', async () => {
    const { delegate, stored } = await open();
    const callId = unique('call');
    expect(await delegate(diamond, callId)).toEqual(await delegate(diamond, callId));
    expect(await stored()).toHaveLength(1);
  });

  it.each([
    ['a cycle', ask(node('a', ['b']), node('b', ['a']), node('c')), 'not_a_graph', 'a → b → a'],
    ['a subtask that waits for itself', ask(node('a', [' a '])), 'not_a_graph', 'a → a'],
    ['an unknown dependency', ask(node('a', ['later'])), 'not_a_graph', '"later", which is none of'],
    ['ids as one text', ask(node('a'), node('b'), node('c', ['a, b'])), 'not_a_graph', 'subtasks: a, b, c'],
    ['an id used twice', ask(node('a'), node('a')), 'not_a_graph', 'the id "a"'],
    ['ids that differ in case', ask(node('a'), node('A')), 'not_a_graph', 'the id "A"'],
    [
      'a forbidden agent',
      ask(node('a'), node('b', [], { agent: 'spy' })),
      'agent_not_allowed',
      'self, main, clerk',
    ],
    [
      'an unknown agent',
      ask(node('a', [], { agent: 'Clark' })),
      'agent_not_allowed',
      'Did you mean "clerk"?',
    ],
    [
      'too many dependencies',
      ask(
        ...many(46, []),
        ...Array.from({ length: 46 }, (_, n) =>
          node(
            `y${n}`,
            many(46, []).map(({ id }) => id),
          ),
        ),
      ),
      'too_many_dependencies',
      '2116 dependencies, and 2000',
    ],
  ])('refuses %s up front and says what to change', async (_, raw, reason, note) => {
    const { delegate, stored } = await open();
    expect(await delegate(raw)).toEqual({ status: 'refused', reason, note: expect.stringContaining(note) });
    expect(await stored()).toEqual([]);
  });

  it.each([
    ['too_deep', { depth: 0 }, 0],
    ['too_many_subtasks', { nodes: 3 }, 3],
    ['tree_out_of_time', { treeMs: 0 }, 0],
  ])(
    'returns the refusal %s as a result that names the limit and an alternative',
    async (reason, over, limit) => {
      const { delegate, stored } = await open({ limits: over });
      const note = expect.stringMatching(/\w{3}.*\.$/);
      expect(await delegate(diamond)).toEqual({ status: 'refused', reason, limit, note });
      expect(await stored()).toEqual([]);
    },
  );

  it('dispatches nothing if a hook refuses one of the agents', async () => {
    const hooks = createHooks({ log: silentLog, clock: systemClock });
    const asked: string[] = [];
    const decide = ({ agentId: agent, task, depth }: { agentId: string; task: string; depth: number }) => {
      asked.push(`${agent} ${depth} ${task}`);
      return agent === 'cook' ? ({ kind: 'refuse', reason: 'not at night' } as const) : undefined;
    };
    hooks.on('subagent_spawning', decide, { owner: 'test' });
    const { delegate, stored } = await open({ hooks });
    const refused = await delegate(
      ask(node('a'), node('b', [], { agent: 'self' }), node('c', ['a'], { agent: 'cook' })),
    );
    expect(refused).toMatchObject({
      status: 'refused',
      reason: 'hook',
      note: 'c: Not allowed: not at night',
    });
    expect(asked).toEqual(['clerk 1 do a', 'cook 1 do c']);
    expect(await stored()).toEqual([]);
  });

  it('tells the model which agents it may ask, and what they are good at', async () => {
    const { tool } = await open();
    expect(tool.description).toContain(
      'Agents:\n- main: yourself, as a sub-agent that only knows its instructions\n' +
        '- clerk: Knows the files.; can: read invoices, find dates\n- cook',
    );
    expect(tool.description).not.toContain('spy');
  });

  it('lists the agents that a run may ask, as the description of delegate does', async () => {
    const { run } = await open();
    const listed = await call(
      createAgentsListTool(
        agentRoster({ agents, model: 'demo', defaultAgent: agentId('main') }),
        toolRunOf(run),
      ),
      run,
      {},
    );
    const clerk = { specialty: 'Knows\nthe files.', capabilities: ['read invoices', 'find dates'] };
    expect(JSON.parse(listed.text)).toEqual([
      {
        id: 'main',
        name: 'main',
        capabilities: [],
        isDefault: true,
        model: 'demo',
        askedBy: ['main', 'clerk', 'cook', 'spy'],
      },
      expect.objectContaining({ id: 'clerk', ...clerk }),
      expect.objectContaining({ id: 'cook' }),
    ]);
  });

  it("lists and shows the tasks of the run's own session, with the whole result of a subtask", async () => {
    const { delegate, tasks, run, worker } = await open();
    const { task } = await delegate(ask(node('constructor'), node('b', ['constructor'])));
    await worker.answer(run, 'I have asked others.');
    await worker.finish(task, 'constructor', `${'x'.repeat(9_999)}€ and the end`);
    expect(JSON.parse((await tasks({ action: 'list' })).text)).toEqual([
      { id: task, title: 'a task', state: 'executing', subtasks: '1 of 2 ended' },
    ]);
    expect((await tasks({ action: 'show' })).value).toMatchObject({
      subtasks: [
        { id: 'constructor', state: 'done' },
        { id: 'b', state: 'dispatched', tries: 1 },
      ],
    });
    const subtask = 'constructor';
    const page = await tasks({ action: 'show', task: task.slice(0, 6), subtask });
    expect(page.text).toBe('Characters 0 to 10000 of 10012. The next ones begin at offset 10000.');
    expect(await tasks({ action: 'show', subtask, offset: 10_000 })).toMatchObject({
      text: 'Characters 10000 to 10012 of 10012.',
      untrusted: { text: ' and the end' },
    });
    expect((await tasks({ action: 'show', subtask: 'b' })).text).toBe('b has no result yet.');
    await expect(tasks({ action: 'show', subtask: 'z' })).rejects.toThrow('no subtask z: constructor, b');
    const { run: stranger } = await aFamilyWorker(store()).begin();
    await expect(tasks({ action: 'show', task }, stranger)).rejects.toThrow('0 tasks with an id like');
  });

  it('shows a coordinator the tasks that its sub-agents have delegated', async () => {
    const { delegate, tasks, worker } = await open();
    const { task } = await delegate(ask(node('a')));
    const below = await worker.ask(await worker.claimPeer(task, 'a'), [{ id: 'deep' }]);
    const ids = JSON.parse((await tasks({ action: 'list' })).text).map(({ id }: { id: string }) => id);
    expect(new Set(ids)).toEqual(new Set([task, 'taskId' in below && below.taskId]));
  });

  it('stops a subtask or a task, but none with more rights than the person who is answered', async () => {
    const { delegate, tasks, stored, run } = await open();
    const { task } = await delegate(ask(node('constructor', [], { onFailure: 'skip' }), node('toString')));
    const guest = { ...run, authority: 'guest' } as const;
    for (const action of ['show', 'stop'])
      expect((await tasks({ action }, guest)).text).toContain('with more rights than the person');
    expect((await tasks({ action: 'stop', task, subtask: 'constructor' })).text).toBe('Stopped.');
    expect((await tasks({ action: 'stop', task, subtask: 'constructor' })).text).toBe(
      'It has ended already.',
    );
    expect((await tasks({ action: 'stop' })).text).toBe('Stopped.');
    expect((await tasks({ action: 'stop', task })).text).toBe('It has ended already.');
    await expect(tasks({ action: 'stop' })).rejects.toThrow('0 open tasks');
    expect(await stored()).toMatchObject([
      {
        ...{ state: 'failed', error: 'stopped by main' },
        subtasks: [
          { state: 'skipped', error: 'stopped by main' },
          { state: 'failed', error: 'stopped by main' },
        ],
      },
    ]);
  });
});

function many(count: number, dependsOn: readonly string[]) {
  return Array.from({ length: count }, (_, n) => node(`x${n}`, dependsOn));
}
