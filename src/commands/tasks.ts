/** Shows the tasks of this conversation with their subtasks, and stops, retries or steers them. */
import type { Authority } from '#contracts/outcome.ts';
import { coordinatorItself, type SubtaskView, type TaskView } from '#contracts/task.ts';
import { platformRef } from '../sessions/identities.ts';
import { lockCommand } from '../store/access/sender-roles.ts';
import type { CommandScene, StepTx } from '../store/base/command.ts';
import { addEffects } from '../store/base/effects.ts';
import { newRowId } from '../store/base/keys.ts';
import { lockLineage } from '../store/children/child.ts';
import { lockBranch, steerChild } from '../store/children/operate-child.ts';
import { type OperatedTask, retryTask, stopTaskOrSubtask } from '../store/delegation/operate-task.ts';
import { findTask, findTaskNamed, readTasks } from '../store/reads/read-tasks.ts';
import { type ChatTexts, dollarText, fillText } from '../texts/chat-texts.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';
import { type CommandCall, type CommandDeps, chatCommand, type Problem } from './chat-command.ts';
import { conversationOf, hasStarted, rightToDirect } from './subagents.ts';

/** How many tasks are listed. */
const shown = 10;
/** How many subtasks of a task are listed; of more, only those at work or failed, and at most as many. */
const shownSubtasks = 12;
/** How many letters of an id the list shows. */
const shortId = 5;

export const tasks = chatCommand({
  name: 'tasks',
  usage: '[list|show id|stop id [subtask]|retry id|steer id subtask text]',
  menu: 'tasksMenu',
  isForAll: true,
  parse: parseTasksRequest,
  // As for sub-agents: that a task is open is no secret, what it is about is.
  right: rightToDirect,
  load,
  lock: async (tx, place, input) => {
    if (!('laneKeys' in input)) return input;
    // It ends with a turn in the lane that delegated it, which may be that of a sub-agent.
    await lockCommand(tx, place, { lanes: input.laneKeys.map((key) => ({ key })) });
    if (input.kind === 'steer') await lockBranch(tx, input.childId);
    else await lockLineage(tx, input.task.laneKey);
    return input;
  },
  apply,
  say,
  isRefused: ({ kind }) => kind === 'not-permitted' || kind === 'lesser-rights',
});

type Found =
  | { readonly kind: 'list'; readonly tasks: readonly TaskView[]; readonly now: number }
  | { readonly kind: 'unknown' | 'several'; readonly which: string }
  | { readonly kind: 'not-permitted' }
  | { readonly kind: 'show'; readonly task: TaskView; readonly now: number }
  | {
      readonly kind: 'subtask-unknown' | 'subtask-self' | 'subtask-idle';
      readonly task: TaskView;
      readonly subtaskId: string;
    };

type Direction = {
  readonly task: TaskView;
  readonly laneKeys: readonly string[];
  readonly by: string;
  readonly authority: Authority;
};

type TasksInput =
  | Found
  | (Direction & { readonly kind: 'stop'; readonly subtaskId: string | undefined })
  | (Direction & { readonly kind: 'retry' })
  | (Direction & {
      readonly kind: 'steer';
      readonly subtaskId: string;
      readonly childId: string;
      readonly id: string;
      readonly text: string;
    });

async function load(deps: CommandDeps, call: CommandCall, request: TasksRequest): Promise<TasksInput> {
  const { now, authority } = call;
  const { laneKeys, people } = conversationOf(deps, call);
  if (request.kind === 'list')
    return {
      kind: 'list',
      tasks: await deps.store.read(readTasks, { laneKeys, isTop: true, limit: shown }),
      now,
    };
  const { which } = request;
  const named = await deps.store.read(findTaskNamed, { id: which, laneKeys });
  if (named.kind === 'several') return { kind: 'several', which };
  const task = named.kind === 'found' ? await deps.store.read(findTask, named) : undefined;
  if (!task) return { kind: 'unknown', which };
  if (call.right === 'own' && !(await hasStarted(deps, call, { id: task.id, people })))
    return { kind: 'not-permitted' };
  const by = platformRef(call.envelope.route.channel, call.envelope.sender.id);
  const direction = { task, laneKeys, by, authority };
  switch (request.kind) {
    case 'show':
      return { kind: 'show', task, now };
    case 'stop':
      return { ...direction, kind: 'stop', subtaskId: request.subtaskId };
    case 'retry':
      return { ...direction, kind: 'retry' };
    case 'steer':
      return steering(direction, request);
    default:
      return request satisfies never;
  }
}

function steering(
  direction: Direction,
  { subtaskId, text }: Extract<TasksRequest, { kind: 'steer' }>,
): TasksInput {
  const { task } = direction;
  const node = task.subtasks.find(({ id }) => id === subtaskId);
  if (!node) return { kind: 'subtask-unknown', task, subtaskId };
  if (node.agent === coordinatorItself) return { kind: 'subtask-self', task, subtaskId };
  const { childId } = node;
  if (node.state !== 'dispatched' || childId === undefined) return { kind: 'subtask-idle', task, subtaskId };
  return { ...direction, kind: 'steer', subtaskId, childId, id: newRowId(), text };
}

type Facts =
  | Found
  | {
      readonly kind:
        | 'stopped'
        | 'retried'
        | 'ended'
        | 'not-failed'
        | 'lesser-rights'
        | 'gone'
        | 'out-of-time';
      readonly task: TaskView;
    }
  | { readonly kind: 'subtask-stopped' | 'steered'; readonly task: TaskView; readonly subtaskId: string };

async function apply(tx: StepTx, { effects }: CommandScene, input: TasksInput): Promise<Facts> {
  switch (input.kind) {
    case 'stop': {
      const { task, subtaskId } = input;
      const order = orderOf(input, subtaskId);
      const stopped = await stopTaskOrSubtask.run(tx, order);
      addEffects(effects, stopped.effects);
      if (stopped.kind !== 'done') return refusalOf(stopped.kind, { task, subtaskId, late: 'ended' });
      return subtaskId === undefined
        ? { kind: 'stopped', task }
        : { kind: 'subtask-stopped', task, subtaskId };
    }
    case 'retry': {
      const { task } = input;
      const retried = await retryTask.run(tx, orderOf(input));
      addEffects(effects, retried.effects);
      if (retried.kind === 'done') return { kind: 'retried', task };
      return refusalOf(retried.kind, { task, subtaskId: undefined, late: 'not-failed' });
    }
    case 'steer': {
      const { task, subtaskId } = input;
      const steered = await steerChild.run(tx, input);
      addEffects(effects, steered.effects);
      if (steered.kind === 'done') return { kind: 'steered', task, subtaskId };
      return steered.kind === 'lesser-rights'
        ? { kind: 'lesser-rights', task }
        : { kind: 'subtask-idle', task, subtaskId };
    }
    default:
      return input;
  }
}

function orderOf({ task, by, authority }: Direction, subtaskId?: string) {
  return { taskId: task.id, by, authority, ...(subtaskId !== undefined && { subtaskId }) };
}

type LateOrder = {
  readonly task: TaskView;
  readonly subtaskId: string | undefined;
  /** Said if it came too late. */
  readonly late: 'ended' | 'not-failed';
};

function refusalOf(kind: Exclude<OperatedTask['kind'], 'done'>, { task, subtaskId, late }: LateOrder): Facts {
  if (kind === 'ended')
    return subtaskId === undefined ? { kind: late, task } : { kind: 'subtask-idle', task, subtaskId };
  if (kind !== 'unknown') return { kind, task };
  return subtaskId === undefined
    ? { kind: 'unknown', which: task.id }
    : { kind: 'subtask-unknown', task, subtaskId };
}

function say(facts: Facts, texts: ChatTexts): string {
  switch (facts.kind) {
    case 'list':
      return sayList(facts, texts);
    case 'show':
      return sayTask(facts, texts);
    case 'unknown':
      return fillText(texts.taskUnknown, facts);
    case 'several':
      return fillText(texts.taskSeveral, facts);
    case 'not-permitted':
      return fillText(texts.notPermitted, { who: texts.whoStops });
    case 'subtask-unknown':
    case 'subtask-self':
    case 'subtask-idle':
    case 'subtask-stopped':
    case 'steered':
      return fillText(texts[subtaskTexts[facts.kind]], { ...namesOf(facts.task), subtask: facts.subtaskId });
    case 'stopped':
    case 'retried':
    case 'ended':
    case 'not-failed':
    case 'lesser-rights':
    case 'gone':
    case 'out-of-time':
      return fillText(texts[taskTexts[facts.kind]], namesOf(facts.task));
    default:
      return facts satisfies never;
  }
}

const subtaskTexts = {
  'subtask-unknown': 'subtaskUnknown',
  'subtask-self': 'subtaskIsSelf',
  'subtask-idle': 'subtaskIsIdle',
  'subtask-stopped': 'subtaskStopped',
  steered: 'subtaskSteered',
} as const;

const taskTexts = {
  stopped: 'taskStopped',
  retried: 'taskRetried',
  ended: 'taskEnded',
  'not-failed': 'taskHasNotFailed',
  'lesser-rights': 'taskLesserRights',
  gone: 'taskGone',
  'out-of-time': 'taskOutOfTime',
} as const;

type Scene = { readonly now: number; readonly texts: ChatTexts };

function sayList({ tasks: found, now }: Extract<Facts, { kind: 'list' }>, texts: ChatTexts): string {
  if (found.length === 0) return texts.tasksNone;
  return [...found.map((task) => taskLine(task, { now, texts })), texts.tasksHint].join('\n');
}

function sayTask({ task, now }: Extract<Facts, { kind: 'show' }>, texts: ChatTexts): string {
  const { agent, subtasks } = task;
  const scene = { now, texts };
  const sum = (count: (each: SubtaskView) => number) => subtasks.reduce((all, each) => all + count(each), 0);
  const used = { tokens: sum(({ tokens }) => tokens), cost: dollarText(sum(({ cost }) => cost)) };
  return [
    taskLine(task, scene),
    ...graphLines(subtasks, scene),
    fillText(texts.taskInfo, { agent, ...used }),
  ].join('\n');
}

/** Returns a line for each subtask; of many, for those that somebody may want to direct, and how many others there are. */
function graphLines(subtasks: readonly SubtaskView[], scene: Scene): readonly string[] {
  if (subtasks.length <= shownSubtasks) return subtasks.map((one) => subtaskLine(one, scene));
  const listed = subtasks
    .filter(({ state }) => state === 'dispatched' || state === 'failed')
    .slice(0, shownSubtasks);
  const others = subtasks.filter((one) => !listed.includes(one));
  const counts = (['pending', 'dispatched', 'done', 'failed', 'skipped'] as const).flatMap((state) => {
    const count = others.filter((one) => one.state === state).length;
    return count === 0 ? [] : [`${scene.texts[stateTexts[state]]}: ${count}`];
  });
  const more = fillText(scene.texts.subtasksMore, { counts: counts.join(', ') });
  return [...listed.map((one) => subtaskLine(one, scene)), more];
}

function taskLine(task: TaskView, scene: Scene): string {
  return fillText(scene.texts.taskLine, { ...namesOf(task), state: taskState(task, scene) });
}

function namesOf({ id, title }: Pick<TaskView, 'id' | 'title'>) {
  return { id: id.slice(0, shortId), name: cleanLabel(title) };
}

function taskState(
  { state, subtasks, error = '', createdAt, endedAt = 0 }: TaskView,
  { texts }: Scene,
): string {
  switch (state) {
    case 'pending':
      return texts.taskPending;
    case 'in-progress':
      return texts.taskInProgress;
    case 'planning':
      return texts.taskPlanning;
    case 'executing': {
      const open = subtasks.filter((one) => one.state === 'pending' || one.state === 'dispatched').length;
      return fillText(texts.taskExecuting, { ended: subtasks.length - open, all: subtasks.length });
    }
    case 'aggregating':
      return texts.taskAggregating;
    case 'done':
      return fillText(texts.taskDone, { seconds: secondsOf(endedAt - createdAt) });
    case 'failed':
      return fillText(texts.taskFailed, { error: cleanLabel(error) });
    default:
      return state satisfies never;
  }
}

const stateTexts = {
  pending: 'subtaskPending',
  dispatched: 'subtaskDispatched',
  done: 'subtaskDone',
  failed: 'subtaskFailed',
  skipped: 'subtaskSkipped',
} as const;

function subtaskLine(subtask: SubtaskView, scene: Scene): string {
  return `· ${subtask.id} (${subtask.agent}): ${subtaskState(subtask, scene)}`;
}

/** Returns the state, then for how long it has worked, which try it is, its own task, and why it failed. */
function subtaskState(subtask: SubtaskView, { now, texts }: Scene): string {
  const { state, tries, dependsOn, taskId, error, startedAt, endedAt = now } = subtask;
  const waitsFor = state === 'pending' && dependsOn.length > 0 ? ` (${dependsOn.join(', ')})` : '';
  const facts = [
    `${texts[stateTexts[state]]}${waitsFor}`,
    ...(startedAt === undefined ? [] : [`${secondsOf(endedAt - startedAt)} s`]),
    ...(tries > 1 ? [fillText(texts.subtaskTry, { tries })] : []),
    ...(taskId === undefined ? [] : [fillText(texts.subtaskTask, { id: taskId.slice(0, shortId) })]),
  ];
  return error === undefined ? facts.join(', ') : `${facts.join(', ')}: ${cleanLabel(error)}`;
}

function secondsOf(ms: number): number {
  return Math.max(0, Math.round(ms / 1000));
}

/** Parsed words of `/tasks …`. `which`: the beginning of a task's id, as shown in the list. */
type TasksRequest =
  | { readonly kind: 'list' }
  | { readonly kind: 'show' | 'retry'; readonly which: string }
  | { readonly kind: 'stop'; readonly which: string; readonly subtaskId: string | undefined }
  | { readonly kind: 'steer'; readonly which: string; readonly subtaskId: string; readonly text: string };

/** Parses the words after `/tasks`: nothing, `list`, `show x`, `stop x`, `stop x a`, `retry x`, or `steer x a the words`. */
function parseTasksRequest(words: string): TasksRequest | Problem {
  const [, verb = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(words.trim()) ?? [];
  const [, which = '', subtaskId = '', text = ''] =
    /^#?([a-z2-7]{2,16})(?:\s+([\w-]{1,40})(?:\s+([\s\S]+))?)?$/i.exec(rest) ?? [];
  const kind = verb.toLowerCase();
  const id = which.toLowerCase();
  switch (kind) {
    case '':
      return { kind: 'list' };
    case 'list':
      return rest === '' ? { kind: 'list' } : { problem: 'commandAlone', values: { command: '/tasks list' } };
    case 'show':
    case 'retry':
      return id !== '' && subtaskId === ''
        ? { kind, which: id }
        : { problem: 'taskUsage', values: { verb: kind } };
    case 'stop':
      return id !== '' && text === ''
        ? { kind, which: id, subtaskId: subtaskId === '' ? undefined : subtaskId }
        : { problem: 'taskStopUsage' };
    case 'steer':
      return text === '' ? { problem: 'taskSteerUsage' } : { kind, which: id, subtaskId, text };
    default:
      return { problem: 'taskUnknownVerb', values: { verb } };
  }
}
