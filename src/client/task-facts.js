/** Texts about a task and its subtasks, the same on page and terminal. */
import { durationText } from './duration.js';

/** @import { SubtaskState, SubtaskView, TaskActivity } from '#contracts/task.ts' */

/** @type {Readonly<Record<SubtaskState, string>>} */
export const subtaskWords = {
  pending: 'waiting',
  dispatched: 'running',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
};

/**
 * Returns how many of a task's subtasks are in each state, without those that have none.
 * @param {Pick<TaskActivity, 'subtasks' | 'counts'>} task
 * @returns {Readonly<Partial<Record<SubtaskState, number>>>}
 */
export function countsOf({ subtasks, counts }) {
  if (counts !== undefined) return counts;
  /** @type {Partial<Record<SubtaskState, number>>} */
  const counted = {};
  for (const { state } of subtasks) counted[state] = (counted[state] ?? 0) + 1;
  return counted;
}

/**
 * Returns the number of subtasks, those of a large graph that aren't listed included.
 * @param {Pick<TaskActivity, 'subtasks' | 'counts'>} task
 */
export function totalOf(task) {
  return Object.values(countsOf(task)).reduce((sum, count) => sum + count, 0);
}

/**
 * Returns how far a task has come: `3 of 5 subtasks done, b runs`.
 * @param {TaskActivity} task
 */
export function taskFacts(task) {
  const { state, error, createdAt, endedAt } = task;
  const time = endedAt === undefined ? '' : ` in ${durationText(endedAt - createdAt)}`;
  switch (state) {
    case 'done':
      return [`done${time}`, ...progressOf(task)].join(', ');
    case 'failed':
      return [`failed${time}`, ...progressOf(task)].join(', ') + (error === undefined ? '' : `: ${error}`);
    case 'executing':
      return progressOf(task).join(', ');
    case 'aggregating':
      return [...progressOf(task), 'the answer is being written'].join(', ');
    case 'in-progress':
      return 'running';
    default:
      return state === 'planning' ? 'being planned' : 'waiting';
  }
}

/**
 * @param {TaskActivity} task
 * @returns {readonly string[]}
 */
function progressOf(task) {
  const total = totalOf(task);
  if (total === 0) return [];
  const { done = 0, dispatched = 0, failed = 0, skipped = 0 } = countsOf(task);
  const running = task.subtasks.filter(({ state }) => state === 'dispatched');
  return [
    `${done} of ${total} ${total === 1 ? 'subtask' : 'subtasks'} done`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(dispatched > 0 ? [runningText(running, dispatched)] : []),
  ];
}

/** This many subtasks are named. */
const named = 3;

/**
 * Returns `b runs`, `b and c run`, `b, c and 4 more run`.
 * @param {readonly SubtaskView[]} running
 * @param {number} count
 */
function runningText(running, count) {
  return `${listText(
    running.map(({ id }) => id),
    count,
  )} ${count === 1 ? 'runs' : 'run'}`;
}

/**
 * Returns `a, b and c`, or `a, b and 4 more` of a `count` too large for that.
 * @param {readonly string[]} names
 * @param {number} count
 */
function listText(names, count = names.length) {
  const shown = count > named ? [...names.slice(0, named - 1), `${count - named + 1} more`] : names;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}

/**
 * Returns the time from a subtask's last dispatch to its end, both in ms, or until `now`; empty before the first one.
 * @param {Pick<SubtaskView, 'startedAt' | 'endedAt'>} subtask
 * @param {number} now
 */
export function subtaskTime({ startedAt, endedAt }, now) {
  return startedAt === undefined ? '' : durationText((endedAt ?? now) - startedAt);
}

/**
 * Returns the facts about a subtask that don't change by themselves: `running`, `agent research`, `try 2`, `after a and b`.
 * @param {SubtaskView} subtask
 * @returns {readonly string[]}
 */
export function subtaskFacts({ state, agent, tries, dependsOn }) {
  return [
    subtaskWords[state],
    agent === 'self' ? 'by the coordinator itself' : `agent ${agent}`,
    ...(tries > 1 ? [`try ${tries}`] : []),
    ...(dependsOn.length > 0 ? [`after ${listText(dependsOn)}`] : []),
  ];
}

/**
 * Returns what to announce of the change from one view of a task to the next: `a done; b and c running`. Empty if no
 * state has changed.
 * @param {TaskActivity} before
 * @param {TaskActivity} after
 */
export function taskNews(before, after) {
  const known = new Map(before.subtasks.map(({ id, state }) => [id, state]));
  const changed = after.subtasks.filter(({ id, state }) => known.has(id) && known.get(id) !== state);
  const groups = Map.groupBy(changed, ({ state }) => state);
  const parts = [...groups].map(
    ([state, all]) => `${listText(all.map(({ id }) => id))} ${subtaskWords[state]}`,
  );
  return (before.state === after.state ? parts : [...parts, taskFacts(after)]).join('; ');
}
