import { z } from 'zod';
import { maxTextLength, tooLongText } from '#channel-kit/client-frames.ts';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { coordinatorItself, taskRecordSchema, taskViewSchema } from '#contracts/task.ts';
import { stripText } from '../logging/redaction.ts';
import { newRowId } from '../store/base/keys.ts';
import { steerChild } from '../store/children/operate-child.ts';
import { type OperatedTask, retryTask, stopTaskOrSubtask } from '../store/delegation/operate-task.ts';
import { findSession } from '../store/reads/read-sessions.ts';
import { findTask, findTaskNamed, findTaskRecord, readTasks } from '../store/reads/read-tasks.ts';
import { type ChangeDeps, operation, Refusal, refuseId, type StoreDeps } from './operation.ts';
import { conversation } from './sessions.ts';

export const listTasks = operation({
  name: 'tasks',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Lists tasks with their subtasks, open ones first, then the newest; cost in micro-dollars',
  input: z.object({
    session: z
      .string()
      .max(2048)
      .exactOptional()
      .describe('A session key, or a session’s id: only the tasks of that conversation and below it'),
    limit: z.coerce.number().int().min(1).max(200).default(20),
  }),
  answer: z.object({ tasks: z.array(taskViewSchema).readonly() }),
  refusals: ['not_found', 'ambiguous'],
  run: async ({ store }: StoreDeps, { session, limit }) => {
    if (session === undefined) return { tasks: await store.read(readTasks, { limit }) };
    const found = await store.read(findSession, { idOrKey: session });
    if (found.kind !== 'found') return refuseId(found, session, conversation);
    return { tasks: await store.read(readTasks, { laneKeys: [found.session.key], limit }) };
  },
});

const id = z.string().min(1).max(100).describe('As listed, or the beginning of it');
const subtask = z.string().min(1).max(40).describe('Its id within the task');

export const showTask = operation({
  name: 'tasks/show',
  method: 'GET',
  right: 'owner',
  scope: 'read',
  summary: 'Shows a task with its subtasks, and what was asked and answered',
  input: z.object({ id }),
  answer: taskRecordSchema,
  refusals: ['not_found', 'ambiguous'],
  run: async (deps: StoreDeps, { id: asked }) => {
    const taskId = await findOne(deps, asked);
    if (taskId instanceof Refusal) return taskId;
    return (await deps.store.read(findTaskRecord, { taskId })) ?? unknown(asked);
  },
});

const directing = {
  method: 'POST',
  right: 'owner',
  scope: 'operate',
  refusals: ['not_found', 'ambiguous', 'not_possible'],
} as const;
const changed = z.object({ id: z.string() });

export const stopTask = operation({
  ...directing,
  name: 'tasks/stop',
  summary: 'Stops a task, or one of its subtasks, which then counts as failed',
  input: z.strictObject({ id, subtask: subtask.exactOptional() }),
  answer: changed,
  run: async (deps: ChangeDeps, { id: asked, subtask: subtaskId }, { by }) => {
    const taskId = await findOne(deps, asked);
    if (taskId instanceof Refusal) return taskId;
    const order = { taskId, by, authority: 'owner', ...(subtaskId !== undefined && { subtaskId }) } as const;
    const operated = await deps.store.write(stopTaskOrSubtask, order);
    return answerFor(deps, operated, { taskId, subtaskId, ended: 'has already ended, or hasn’t begun' });
  },
});

export const retryFailedTask = operation({
  ...directing,
  name: 'tasks/retry',
  summary: 'Begins again with the subtasks of a failed task that have failed or never began',
  input: z.strictObject({ id }),
  answer: changed,
  run: async (deps: ChangeDeps, { id: asked }, { by }) => {
    const taskId = await findOne(deps, asked);
    if (taskId instanceof Refusal) return taskId;
    const operated = await deps.store.write(retryTask, { taskId, by, authority: 'owner' });
    return answerFor(deps, operated, { taskId, ended: 'hasn’t failed, or has no subtasks' });
  },
});

/** The message has the peer's own authority, not the operator's. */
export const steerSubtask = operation({
  ...directing,
  name: 'tasks/steer',
  summary: 'Sends the sub-agent that works on a subtask a message, which it reads before its next step',
  input: z.strictObject({
    ...{ id, subtask },
    text: z
      .string()
      .max(maxTextLength, tooLongText)
      .refine((text) => text.trim() !== '', 'The message is empty.'),
  }),
  answer: changed,
  run: async (deps: ChangeDeps, { id: asked, subtask: subtaskId, text }, { by }) => {
    const taskId = await findOne(deps, asked);
    if (taskId instanceof Refusal) return taskId;
    const task = await deps.store.read(findTask, { taskId });
    const node = task?.subtasks.find((one) => one.id === subtaskId);
    if (!node) return unknown(taskId, subtaskId);
    if (node.agent === coordinatorItself)
      return notPossible(
        taskId,
        `${subtaskId} is done by the coordinator itself; write to its conversation.`,
      );
    const { childId } = node;
    if (node.state !== 'dispatched' || childId === undefined)
      return notPossible(taskId, `Nothing works on ${subtaskId}.`);
    const steer = { childId, id: newRowId(), text, authority: 'owner', by } as const;
    const { kind, effects } = await deps.store.write(steerChild, steer);
    deps.start(effects);
    return kind === 'done' ? { id: taskId } : notPossible(taskId, `Nothing works on ${subtaskId} any more.`);
  },
});

type TaskChange = {
  readonly taskId: string;
  readonly subtaskId?: string | undefined;
  /** Words for a change that came too late. */
  readonly ended: string;
};

function answerFor(
  { start }: ChangeDeps,
  { kind, effects }: OperatedTask,
  { taskId, subtaskId, ended }: TaskChange,
): { id: string } | Refusal {
  start(effects);
  switch (kind) {
    case 'done':
      return { id: taskId };
    case 'ended':
      return notPossible(taskId, `${subtaskId ?? taskId} ${ended}.`);
    case 'unknown':
      return unknown(taskId, subtaskId);
    case 'gone':
      return notPossible(taskId, `The session that ${taskId} belongs to has ended.`);
    case 'out-of-time':
      return notPossible(taskId, `${taskId} has used up its time.`);
    case 'lesser-rights':
      return notPossible(taskId, `${taskId} has more rights.`);
    default:
      return kind satisfies never;
  }
}

function notPossible(taskId: string, text: string): Refusal {
  return new Refusal('not_possible', `${stripText(text)} See: ${parleyCommand} tasks show ${taskId}`);
}

function unknown(taskId: string, subtaskId?: string): Refusal {
  if (subtaskId === undefined)
    return refuseId({ kind: 'none' }, taskId, { noun: 'task', list: 'tasks list' });
  return refuseId({ kind: 'none' }, subtaskId, {
    noun: `subtask of ${taskId}`,
    list: `tasks show ${taskId}`,
  });
}

/** Finds a task by its id or the beginning of it. */
async function findOne({ store }: StoreDeps, id: string): Promise<string | Refusal> {
  const found = await store.read(findTaskNamed, { id });
  return found.kind === 'found' ? found.taskId : refuseId(found, id, { noun: 'task', list: 'tasks list' });
}
