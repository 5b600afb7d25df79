/** `task.md`: a task as a person reads it. Parley writes it and never reads it. */
import { fitBytes } from '#channel-kit/clean-text.ts';
import { oneShownLine } from '#channel-kit/front-matter.ts';
import type { SubtaskView, TaskView } from '#contracts/task.ts';
import { readableText } from '../replies/reply-pipeline.ts';
import type { TaskFiles } from '../store/reads/read-task-files.ts';
import { yamlText } from './task-message.ts';

/** Texts of others in one file, bytes in total; each has at least `minTextBytes`. */
const maxTextsBytes = 192 * 1024;
const minTextBytes = 400;
const maxSummaryChars = 300;
const microDollars = 1_000_000;

/** Returns the content of the file. */
export function renderTaskFile(files: TaskFiles): string {
  const { task, instructions, lateReplies, results } = files;
  const result = readableText(files.result ?? '', ['chat']);
  const most = Math.max(minTextBytes, Math.floor(maxTextsBytes / (task.subtasks.length + 2)));
  const sections = [
    `# ${inline(task.title)}`,
    'Parley writes this file to show the task; changing it has no effect.',
    ...(instructions === '' ? [] : ['## Instructions', fenced(instructions, most)]),
    ...(task.subtasks.length === 0 ? [] : ['## Graph', task.subtasks.map(lineOf).join('\n')]),
    ...resultsOf(task.subtasks, results, most),
    ...(lateReplies === 0 ? [] : [`Replies that came too late and were archived: ${lateReplies}.`]),
    ...(result === '' ? [] : ['## Result', fenced(result, most)]),
  ];
  return `---\n${matterOf(task, result)}\n---\n\n${sections.join('\n\n')}\n`;
}

function matterOf(task: TaskView, result: string): string {
  const { id, agent, state, mode, revision, parent, error, createdAt, endedAt, subtasks } = task;
  const sum = (of: 'tokens' | 'cost') => subtasks.reduce((total, subtask) => total + subtask[of], 0);
  const fields: readonly (readonly [string, string | number | undefined])[] = [
    ...([
      ['task_id', yamlText(id)],
      ['title', yamlText(oneShownLine(task.title))],
    ] as const),
    ...([
      ['agent', yamlText(agent)],
      ['mode', mode],
      ['state', state],
    ] as const),
    ['parent_task_id', parent && yamlText(parent.taskId)],
    ['parent_subtask_id', parent && yamlText(parent.subtaskId)],
    ['created_at', timeOf(createdAt)],
    ['ended_at', endedAt === undefined ? undefined : timeOf(endedAt)],
    ['duration_s', endedAt === undefined ? undefined : secondsOf(endedAt - createdAt)],
    ...([
      ['subtask_tokens', sum('tokens')],
      ['subtask_cost_usd', usd(sum('cost'))],
    ] as const),
    ['error', error === undefined ? undefined : yamlText(shortened(error))],
    ['result_summary', result === '' ? undefined : yamlText(shortened(result))],
    ['revision', revision],
  ];
  return fields.flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`])).join('\n');
}

function lineOf({
  id,
  agent,
  state,
  dependsOn,
  tries,
  startedAt,
  endedAt,
  cost,
  error,
  name,
}: SubtaskView): string {
  const facts = [
    state,
    ...(dependsOn.length === 0 ? [] : [`after ${dependsOn.map(inline).join(', ')}`]),
    ...(tries > 1 ? [`${tries} tries`] : []),
    ...(startedAt !== undefined && endedAt !== undefined ? [`${secondsOf(endedAt - startedAt)} s`] : []),
    ...(cost > 0 ? [`$${usd(cost)}`] : []),
    ...(error === undefined ? [] : [inline(shortened(error))]),
  ];
  return `- [${state === 'done' ? 'x' : ' '}] **${inline(id)}** (${inline(agent)}): ${facts.join('; ')}. ${inline(name)}`;
}

function resultsOf(
  subtasks: readonly SubtaskView[],
  results: TaskFiles['results'],
  most: number,
): readonly string[] {
  const ended = subtasks.filter(({ id, state }) => state !== 'pending' && Object.hasOwn(results, id));
  if (ended.length === 0) return [];
  const parts = ended.flatMap(({ id, agent, state }) => [
    `### ${inline(id)} (${inline(agent)}): ${state}`,
    fenced(results[id] ?? '', most),
  ]);
  return ['## Subtask Results', ...parts];
}

/** Encloses a text of others in a fence that is longer than any in it, so that nothing of it is read as the file's own. */
function fenced(text: string, maxBytes: number): string {
  const body = fitBytes(text, maxBytes);
  const runs = body.match(/`{3,}/g) ?? [];
  const fence = '`'.repeat(Math.max(2, ...runs.map((run) => run.length)) + 1);
  return `${fence}text\n${body}\n${fence}`;
}

/** Returns a name or short text of others on one line, without the signs that Markdown obeys. */
function inline(text: string): string {
  return oneShownLine(text).replace(/[\\`*_{}[\]<>#|~!&]/g, '\\$&');
}

function shortened(text: string): string {
  const line = oneShownLine(text);
  return line.length > maxSummaryChars ? `${line.slice(0, maxSummaryChars - 1).toWellFormed()}…` : line;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function secondsOf(ms: number): number {
  return Math.max(0, Math.round(ms / 1000));
}

function usd(cost: number): string {
  return (cost / microDollars).toFixed(4);
}
