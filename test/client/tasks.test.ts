import { describe, expect, it } from 'vitest';
import type { ServerFrame } from '#channel-kit/client-frames.ts';
import { emptyConversation, entriesInOrder, reduce } from '../../src/client/conversation.js';
import { subtaskFacts, subtaskTime, taskFacts, taskNews } from '../../src/client/task-facts.js';
import type { ChildView } from '../../src/contracts/child.ts';
import type { SubtaskState, TaskActivity } from '../../src/contracts/task.ts';
import { aNode, aTask } from '../browser/some-tasks.ts';

const node = aNode(100_000);
const after = (...frames: readonly ServerFrame[]) =>
  frames.reduce((state, frame) => reduce(state, { kind: 'frame', frame }), emptyConversation);
const stand = (over: object): ServerFrame => ({ type: 'standing', hellos: 1, ...over });

describe('tasks of a conversation', () => {
  it('shows a task where it was delegated, with its peers and nested tasks inside it', () => {
    const message = { author: { kind: 'agent' }, channel: 'x', state: 'answered' } as const;
    const items: ServerFrame = {
      type: 'items',
      of: 's',
      items: [
        { ...message, position: 1, at: 1_000, messageId: 'before', text: 'I ask others' },
        { ...message, position: 2, at: 3_000, messageId: 'after', text: 'all together' },
      ],
    };
    const task = aTask([node('a', 'dispatched')], { id: 'outer', createdAt: 2_000 });
    const nested = aTask([], { id: 'inner', createdAt: 2_500, parent: { taskId: 'outer', subtaskId: 'a' } });
    const child = { depth: 1, name: 'n', agentId: 'main', state: 'running', tokens: 0, cost: 0 } as const;
    const children: readonly ChildView[] = [
      { ...child, id: 'peer', createdAt: 2_000, isPeer: true },
      { ...child, id: 'below', parentId: 'peer', depth: 2, createdAt: 2_100 },
      { ...child, id: 'own', createdAt: 2_200 },
    ];
    const state = after(items, stand({ tasks: [task, nested], children }));
    const ids = entriesInOrder(state).map((entry) => (entry.message ?? entry.child ?? entry.task).id);
    expect(ids).toEqual(['before', 'outer', 'own', 'after']);
    expect(after(items, stand({ tasks: [task] }), stand({})).tasks).toEqual([]);
    expect(after(items, stand({ tasks: [nested] })).tasks).toHaveLength(1);
    const alone = entriesInOrder(after(items, stand({ tasks: [nested] })));
    expect(alone.map((entry) => entry.task?.id)).toContain('inner');
  });
});

describe('texts about a task', () => {
  const states = (...all: readonly SubtaskState[]) => all.map((state, n) => node('abcdef'[n] ?? '', state));
  const facts = (over: Partial<TaskActivity>, ...all: readonly SubtaskState[]) =>
    taskFacts(aTask(states(...all), { createdAt: 0, ...over }));

  it('counts the subtasks that are done, and names those that run', () => {
    expect(facts({}, 'done', 'dispatched', 'done', 'pending', 'done')).toBe('3 of 5 subtasks done, b runs');
    expect(facts({}, 'dispatched')).toBe('0 of 1 subtask done, a runs');
    expect(facts({}, 'dispatched', 'dispatched')).toBe('0 of 2 subtasks done, a and b run');
    expect(facts({}, ...Array<SubtaskState>(4).fill('dispatched'))).toBe(
      '0 of 4 subtasks done, a, b and 2 more run',
    );
    const counts = { done: 290, dispatched: 30, failed: 1 };
    expect(facts({ counts }, 'dispatched', 'dispatched', 'failed')).toBe(
      '290 of 321 subtasks done, 1 failed, a, b and 28 more run',
    );
  });

  it('tells how a task has ended', () => {
    const end = { state: 'failed', endedAt: 12_000, error: 'b: stopped by ann' } as const;
    expect(facts(end, 'done', 'failed', 'skipped')).toBe(
      'failed in 12 s, 1 of 3 subtasks done, 1 failed, 1 skipped: b: stopped by ann',
    );
    expect(facts({ state: 'done', endedAt: 180_000 }, 'done')).toBe('done in 3 min, 1 of 1 subtask done');
    expect(facts({ state: 'aggregating' }, 'done')).toBe('1 of 1 subtask done, the answer is being written');
    expect(facts({ state: 'in-progress' })).toBe('running');
    expect(facts({ state: 'planning' })).toBe('being planned');
  });

  it('announces changes of states, and nothing else', () => {
    const before = aTask(states('dispatched', 'pending', 'pending', 'dispatched'));
    const spent = { ...before, subtasks: before.subtasks.map((one) => ({ ...one, cost: 1 })) };
    expect(taskNews(before, spent)).toBe('');
    const moved = { ...before, subtasks: states('done', 'dispatched', 'dispatched', 'failed') };
    expect(taskNews(before, moved)).toBe('a done; b and c running; d failed');
    const ended = { ...moved, state: 'done', createdAt: 0, endedAt: 5_000 } as const;
    expect(taskNews(moved, ended)).toBe('done in 5 s, 1 of 4 subtasks done, 1 failed, b and c run');
  });

  it('tells a subtask in words that stay the same while it runs, and its time apart', () => {
    const subtask = node('d', 'dispatched', ['b', 'c'], { tries: 2 });
    expect(subtaskFacts(subtask)).toEqual(['running', 'agent main', 'try 2', 'after b and c']);
    expect(subtaskFacts(node('e', 'pending', [], { agent: 'self' }))).toEqual([
      'waiting',
      'by the coordinator itself',
    ]);
    expect([subtaskTime(subtask, 110_000), subtaskTime(node('e', 'pending'), 0)]).toEqual(['40 s', '']);
  });
});
