import { describe, expect, it } from 'vitest';
import { type AgentMessage, type FinishReason, type ToolCallData, toolCallsOf } from '#contracts/message.ts';
import type { Tool } from '#contracts/tool.ts';
import { agentLoopResume } from '../../src/agent/loop.ts';
import type { CallEntry } from '../../src/agent/resumption.ts';
import {
  aConfig,
  aContext,
  aMessage,
  aTool,
  type ConfigChanges,
  liveInbox,
  type ToolChanges,
  userSays,
} from './support/builders.ts';
import { grammarErrors } from './support/event-grammar.ts';
import { endOf, only, play, resultsOf } from './support/run-loop.ts';
import { callsTools, type Play, says, scriptedModel } from './support/scripted-model.ts';

const unknown = 'interrupted by a restart, outcome unknown';
/** A call that may have taken effect is never reported as not run. */
const saidOf = (state: CallEntry['state'], text: string) =>
  state === 'started' ? `${text}; it had started, outcome unknown` : text;

function calling(id: string, names: readonly string[], finish: FinishReason = 'tool_use'): AgentMessage {
  const calls = names.map(
    (name): ToolCallData => ({ id: name, name: toolOf(name), input: '{}', finished: true }),
  );
  return aMessage('assistant', id, ...calls.map((data) => ({ type: 'tool_call' as const, data })), {
    type: 'finish',
    data: { reason: finish, time: 0 },
  });
}

/** Calls are named after their tool; `act-2` is a second call of `act`. */
function toolOf(callId: string): string {
  return callId.replace(/-\d+$/, '');
}

function resultOf(callId: string, content: string, isError = false): AgentMessage {
  const data = { tool_call_id: callId, name: toolOf(callId), content, is_error: isError };
  return aMessage('tool', `result-${callId}`, { type: 'tool_result', data });
}

/** Belongs to the message that shows the call, unless it names another one. */
type Entry = Omit<CallEntry, 'messageId'> & { readonly messageId?: string };

type Left = {
  readonly tools: readonly Tool[];
  readonly entries: readonly Entry[];
  readonly messages: readonly AgentMessage[];
  readonly signal?: AbortSignal;
  readonly plays?: readonly Play[];
} & ConfigChanges;

async function resume({ tools, entries, messages, signal, plays = [says('done')], ...changes }: Left) {
  const model = scriptedModel(...plays);
  const context = aContext(tools, [userSays('p', 'go'), ...messages]);
  const config = aConfig({ ...changes, model });
  const madeBy = (callId: string) =>
    messages.find(({ parts }) => toolCallsOf(parts).some(({ id }) => id === callId))?.id ?? 'gone';
  const stored = entries.map((entry): CallEntry => ({ messageId: madeBy(entry.callId), ...entry }));
  const played = await play(agentLoopResume(context, stored, config, signal ?? new AbortController().signal));
  expect(grammarErrors(played.events)).toEqual([]);
  return {
    ...played,
    model,
    results: resultsOf(played.messages),
    finish: only(played.events, 'turn_end')[0]?.message.parts.findLast(({ type }) => type === 'finish')?.data,
  };
}

/** Returns a tool that records its calls. */
function noting(ran: string[], name: string, changes: ToolChanges = {}): Tool {
  return aTool(name, {
    execute: async (_, { callId }) => {
      ran.push(callId);
      return { text: `${callId} ran` };
    },
    ...changes,
  });
}

const states = ['fresh', 'started', 'done'] as const;
const replays = ['safe', 'durable', 'never'] as const;
const paths = ['sequential', 'parallel'] as const;
const table = states.flatMap((state) =>
  replays.flatMap((replay) => paths.map((toolExecution) => ({ state, replay, toolExecution }))),
);

/** Resumes a run with one call left in `state`. */
async function resumeOne(state: CallEntry['state'], replay: Tool['replay'], changes: Partial<Left> = {}) {
  const ran: string[] = [];
  const played = await resume({
    tools: [noting(ran, 'act', { replay })],
    entries: [{ callId: 'act', state }],
    messages: [calling('a', ['act']), ...(state === 'done' ? [resultOf('act', 'ran before')] : [])],
    ...changes,
  });
  return { ...played, ran };
}

describe.each(table)('a $state call of a $replay tool, $toolExecution, in a resumed run', (row) => {
  const { state, replay, toolExecution } = row;
  const mayRun = state === 'fresh' || (state === 'started' && replay !== 'never');

  it(mayRun ? 'runs the call, with its events' : "doesn't run the call", async () => {
    const told: unknown[] = [];
    const act = aTool('act', {
      replay,
      execute: async (_, { isRepeat }) => {
        told.push(isRepeat);
        return { text: 'act ran' };
      },
    });
    const { results, events, model } = await resumeOne(state, replay, { toolExecution, tools: [act] });
    expect(told).toEqual(mayRun ? [state === 'started'] : []);
    expect(only(events, 'tool_execution_prepared')).toHaveLength(mayRun ? 1 : 0);
    expect(only(events, 'tool_execution_end')).toHaveLength(state === 'done' ? 0 : 1);
    expect(results).toEqual(state === 'done' ? [] : [`act: ${mayRun ? 'act ran' : unknown}`]);
    expect(only(events, 'turn_end')[0]?.toolResults).toHaveLength(1);
    expect(JSON.stringify(model.requests[0]?.messages)).toContain(
      mayRun ? 'act ran' : state === 'done' ? 'ran before' : unknown,
    );
    expect(endOf(events).reason).toBe('natural');
  });

  it("doesn't run a call that is denied now", async () => {
    const permit = async () => 'denied' as const;
    const { ran, results, model } = await resumeOne(state, replay, { toolExecution, permit });
    expect(ran).toEqual([]);
    if (!mayRun) return;
    expect(results).toEqual([`act: ${saidOf(state, 'permission denied')}`]);
    expect(model.requests[0]?.tools).toEqual([]);
  });

  it("doesn't run a call that a hook blocks", async () => {
    const beforeToolCall = async () => ({ kind: 'block', reason: 'not now' }) as const;
    const { ran, results } = await resumeOne(state, replay, { toolExecution, beforeToolCall });
    expect(ran).toEqual([]);
    if (mayRun) expect(results).toEqual([`act: ${saidOf(state, 'blocked: not now')}`]);
  });

  it("doesn't run a call whose run is stopped", async () => {
    const signal = AbortSignal.abort();
    const { ran, results, events, model } = await resumeOne(state, replay, {
      toolExecution,
      signal,
    });
    expect([ran, model.requests.length, endOf(events).reason]).toEqual([[], 0, 'aborted']);
    const said = mayRun ? saidOf(state, 'cancelled by user') : unknown;
    expect(results).toEqual(state === 'done' ? [] : [`act: ${said}`]);
  });

  it('counts a resumed call for the loop guard', async () => {
    const limits = { ...aConfig().limits, repeatedCalls: 1 };
    const plays = [callsTools({ id: 'act-2', name: 'act' }), says('done')];
    const { ran, events } = await resumeOne(state, replay, { toolExecution, limits, plays });
    expect(ran).toEqual(mayRun ? ['act'] : []);
    expect(endOf(events).reason).toBe('loop_guard');
  });
});

describe('a resumed run', () => {
  const three = ['one', 'two', 'three'];
  const entriesOf = (...[one, two, last]: readonly CallEntry['state'][]): readonly Entry[] =>
    [one, two, last].flatMap((state, index) => (state ? [{ callId: three[index] ?? '', state }] : []));
  const toolsOf = (ran: string[], changes: ToolChanges = {}) =>
    three.map((name) => noting(ran, name, changes));

  it('ends its batch with all results in source order, and emits only the new ones', async () => {
    const ran: string[] = [];
    const { events, messages } = await resume({
      tools: toolsOf(ran, { parallelSafe: true }),
      entries: entriesOf('fresh', 'done', 'started'),
      messages: [calling('a', three), resultOf('two', 'ran before')],
    });
    expect(ran).toEqual(['one', 'three']);
    const end = only(events, 'turn_end')[0];
    expect(resultsOf(end?.toolResults ?? [])).toEqual([
      'one: one ran',
      'two: ran before',
      'three: three ran',
    ]);
    expect(resultsOf(messages)).toEqual(['one: one ran', 'three: three ran']);
    expect(only(events, 'turn_start')[0]).toMatchObject({ turn: 1, resumes: { id: 'a' } });
  });

  it('runs nothing of a batch that was denied before, and answers without tools', async () => {
    const ran: string[] = [];
    const { results, model, finish } = await resume({
      tools: toolsOf(ran),
      entries: entriesOf('done', 'fresh', 'fresh'),
      messages: [calling('a', three), resultOf('one', 'permission denied', true)],
    });
    expect([ran, results]).toEqual([[], ['two: cancelled', 'three: cancelled']]);
    expect(finish).toMatchObject({ reason: 'permission_denied' });
    expect(model.requests[0]?.tools).toEqual([]);
  });

  it('reports an unknown outcome for a started call after a denied one', async () => {
    const ran: string[] = [];
    const { results } = await resume({
      tools: toolsOf(ran, { parallelSafe: true, replay: 'never' }),
      entries: entriesOf('done', 'started', 'fresh'),
      messages: [calling('a', three), resultOf('one', 'permission denied', true)],
    });
    expect([ran, results]).toEqual([[], [`two: ${unknown}`, 'three: cancelled']]);
  });

  it('reports an unknown outcome for started calls that are stopped during or before their repeat', async () => {
    const stop = new AbortController();
    const stops = aTool('two', {
      parallelSafe: true,
      execute: () => {
        stop.abort();
        return Promise.reject(new Error('stopped'));
      },
    });
    const { results } = await resume({
      tools: [...toolsOf([], { parallelSafe: true }).filter(({ name }) => name !== 'two'), stops],
      entries: entriesOf('done', 'started', 'started'),
      messages: [calling('a', three), resultOf('one', 'ran before')],
      signal: stop.signal,
    });
    expect(results).toEqual(['two', 'three'].map((id) => `${id}: ${saidOf('started', 'cancelled by user')}`));
  });

  it('answers without tools after a started call that was denied', async () => {
    const { model } = await resume({
      tools: toolsOf([]),
      entries: entriesOf('done'),
      messages: [calling('a', ['one']), resultOf('one', saidOf('started', 'permission denied'), true)],
    });
    expect(model.requests[0]?.tools).toEqual([]);
  });

  it('skips the unstarted calls of a sequential batch for a message that arrived meanwhile', async () => {
    const ran: string[] = [];
    const inbox = liveInbox();
    inbox.arrive(userSays('s', 'never mind'));
    const { results, model } = await resume({
      tools: toolsOf(ran),
      entries: entriesOf('done', 'started', 'fresh'),
      messages: [calling('a', three), resultOf('one', 'ran before')],
      getSteeringMessages: inbox.poll,
    });
    expect(ran).toEqual(['two']);
    expect(results).toEqual(['two: two ran', 'three: skipped: a new message arrived']);
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('never mind');
  });

  it.each([
    ['skip', ['two: skipped: a new message arrived', 'three: skipped: a new message arrived']],
    ['finish', ['two: two ran', 'three: three ran']],
  ] as const)(
    'applies steerTail to a message taken before the interruption: %s',
    async (steerTail, expected) => {
      const { results } = await resume({
        tools: toolsOf([]),
        entries: entriesOf('done', 'fresh', 'fresh'),
        messages: [calling('a', three), resultOf('one', 'ran before'), userSays('s', 'never mind')],
        steerTail,
      });
      expect(results).toEqual(expected);
    },
  );

  it('starts nothing after a call that parks again', async () => {
    const ran: string[] = [];
    const asks = aTool('one', {
      replay: 'durable',
      execute: async () => ({ parked: { reason: 'an approval' } }),
    });
    const { events, results } = await resume({
      tools: [asks, ...toolsOf(ran).slice(1)],
      entries: entriesOf('started', 'fresh', 'fresh'),
      messages: [calling('a', three)],
    });
    expect([ran, results, endOf(events).reason]).toEqual([[], [], 'parked']);
  });

  it.each(['max_tokens', 'error', 'timeout', 'canceled'] as const)(
    'runs no call of a message that finished with %s',
    async (finish) => {
      const ran: string[] = [];
      const { results } = await resume({
        tools: toolsOf(ran),
        entries: entriesOf('fresh'),
        messages: [calling('a', ['one'], finish)],
      });
      expect(ran).toEqual([]);
      expect(results).toEqual([expect.stringContaining('one: not run')]);
    },
  );

  it('counts the calls of its own earlier turns for the loop guard, and none of other runs', async () => {
    const ran: string[] = [];
    const limits = { ...aConfig().limits, repeatedCalls: 2 };
    const again = (...runs: readonly string[]) =>
      resume({
        tools: [noting(ran, 'act')],
        entries: runs.map((callId): Entry => ({ callId, state: 'done' })),
        messages: ['act-1', 'act-2'].flatMap((id) => [calling(`a-${id}`, [id]), resultOf(id, 'ran before')]),
        plays: [callsTools({ id: 'act-3', name: 'act' }), says('done')],
        limits,
      });
    expect(endOf((await again('act-1', 'act-2')).events).reason).toBe('loop_guard');
    expect(ran).toEqual([]);
    expect(endOf((await again('act-2')).events).reason).toBe('natural');
    expect(ran).toEqual(['act-3']);
  });

  it('counts summarized calls for the loop guard, too', async () => {
    const ran: string[] = [];
    const summarized = { name: 'act', input: '{}' };
    const { events } = await resume({
      tools: [noting(ran, 'act')],
      entries: [
        { callId: 'act-1', state: 'done', summarized },
        { callId: 'act-2', state: 'done' },
      ],
      messages: [calling('a', ['act-2']), resultOf('act-2', 'ran before')],
      plays: [callsTools({ id: 'act-3', name: 'act' }), says('done')],
      limits: { ...aConfig().limits, repeatedCalls: 2 },
    });
    expect([ran, endOf(events).reason]).toEqual([[], 'loop_guard']);
  });

  it('counts the turns of all attempts of a run', async () => {
    const ran: string[] = [];
    const limits = { ...aConfig().limits, turns: 2 };
    const { events, model } = await resume({
      tools: [noting(ran, 'act')],
      entries: ['act-1', 'act-2'].map((callId): Entry => ({ callId, state: 'fresh' })),
      messages: [calling('a', ['act-1']), resultOf('act-1', 'ran before'), calling('b', ['act-2'])],
      limits,
    });
    expect(only(events, 'turn_start').map(({ turn }) => turn)).toEqual([2]);
    expect([ran, endOf(events).reason, model.requests.length]).toEqual([['act-2'], 'turn_limit', 0]);
  });

  it.each([
    ['an open batch', [calling('c', ['act-4'])], 3],
    ['a model call', [], 4],
  ] as const)('counts summarized turns before %s', async (_next, messages, turn) => {
    const { events } = await resume({
      tools: [noting([], 'act')],
      entries: [
        { callId: 'act-1', messageId: 'a', state: 'done' },
        { callId: 'act-2', messageId: 'a', state: 'done' },
        { callId: 'act-3', messageId: 'b', state: 'done' },
        { callId: 'act-4', messageId: 'c', state: 'started' },
      ],
      messages,
    });
    expect(only(events, 'turn_start')[0]?.turn).toBe(turn);
  });

  it('starts with a boundary and a model call if the run was interrupted before any tool call', async () => {
    const inbox = liveInbox();
    inbox.arrive(userSays('s', 'one more'));
    const { model, events } = await resume({
      tools: [],
      entries: [],
      messages: [],
      getSteeringMessages: inbox.poll,
    });
    expect(only(events, 'turn_start').map(({ turn }) => turn)).toEqual([1]);
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('one more');
  });

  it("doesn't reuse the id of a call that has been summarized", async () => {
    const ran: string[] = [];
    await resume({
      tools: [noting(ran, 'act')],
      entries: [{ callId: 'act', state: 'done' }],
      messages: [],
      plays: [callsTools({ id: 'act', name: 'act' })],
    });
    expect(ran).toEqual(['act_2']);
  });

  it("refuses to resume a run after a message that isn't its own", () => {
    const context = aContext([], [userSays('p', 'go'), calling('a', ['one'])]);
    const go = () => agentLoopResume(context, [], aConfig(), new AbortController().signal);
    expect(go).toThrow('assistant message a');
  });
});
