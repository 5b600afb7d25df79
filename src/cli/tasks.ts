import { localTime } from '#channel-kit/time-text.ts';
import type { SubtaskView, TaskRecord, TaskView } from '#contracts/task.ts';
import { childDuration } from '../client/child-facts.js';
import * as tasks from '../operations/tasks.ts';
import { callOperation } from './call-operation.ts';
import type { CommandOutput } from './print.ts';

/** How many tasks a list shows. */
const listed = 50;

/** Lists tasks with their graphs, open ones first. */
export async function listTasks({ session }: { readonly session?: string }): Promise<CommandOutput> {
  const asked = { limit: listed, ...(session !== undefined && { session }) };
  const { tasks: found } = await callOperation(tasks.listTasks, asked);
  const lines = found.flatMap((task) => [taskLine(task), ...graphLines(task)]);
  return { result: found, lines: found.length === 0 ? ['No tasks.'] : lines };
}

/** Shows a task with everything that was asked and answered; `id`: its id or the beginning of it. */
export async function showTask(id: string): Promise<CommandOutput> {
  const task = await callOperation(tasks.showTask, { id });
  return {
    result: task,
    lines: [taskLine(task), ...aboutTask(task), ...graphLines(task), ...textLines(task)],
  };
}

/** Stops a task, or only one of its subtasks. */
export async function stopTask(id: string, subtask?: string): Promise<CommandOutput> {
  const result = await callOperation(tasks.stopTask, { id, ...(subtask !== undefined && { subtask }) });
  return { result, lines: [`Stopped ${subtask === undefined ? '' : `${subtask} of `}${result.id}.`] };
}

/** Begins again with what has failed. */
export async function retryTask(id: string): Promise<CommandOutput> {
  const result = await callOperation(tasks.retryFailedTask, { id });
  return { result, lines: [`Began again with what had failed in ${result.id}.`] };
}

/** Sends the sub-agent that works on a subtask a message, which has the sub-agent's own authority. */
export async function steerSubtask(id: string, subtask: string, text: string): Promise<CommandOutput> {
  const result = await callOperation(tasks.steerSubtask, { id, subtask, text });
  return { result, lines: ['It will read the message before its next step.'] };
}

function taskLine({ id, title, state, agent, createdAt, endedAt, error, subtasks }: TaskView): string {
  const ended = subtasks.filter((one) => one.state !== 'pending' && one.state !== 'dispatched').length;
  const facts = [
    state,
    ...(subtasks.length === 0 ? [] : [`${ended} of ${subtasks.length} subtasks ended`]),
    childDuration({ startedAt: createdAt, endedAt }),
    `agent ${agent}`,
    costText(sumOf(subtasks)),
  ];
  return `${id}  ${localTime(createdAt)}  “${oneLine(title)}”  ${facts.join(', ')}${errorText(error)}`;
}

function aboutTask({ laneKey, mode, parent, instructions }: TaskRecord): readonly string[] {
  return [
    `  ${mode}, lane ${laneKey}`,
    ...(parent === undefined ? [] : [`  part of subtask ${parent.subtaskId} of ${parent.taskId}`]),
    ...(instructions === '' ? [] : [`  asked: ${instructions}`]),
  ];
}

/** Returns one line for each subtask, indented by how many others have to end before it. */
function graphLines({ subtasks }: Pick<TaskView, 'subtasks'>): readonly string[] {
  const byId = new Map(subtasks.map((one) => [one.id, one]));
  const levels = new Map<string, number>();
  const levelOf = (id: string): number => {
    const known = levels.get(id) ?? 1 + Math.max(0, ...(byId.get(id)?.dependsOn ?? []).map(levelOf));
    levels.set(id, known);
    return known;
  };
  return subtasks.map((one) => `${'  '.repeat(levelOf(one.id))}${subtaskLine(one)}`);
}

function subtaskLine(subtask: SubtaskView): string {
  const { id, agent, name, state, tries, dependsOn, taskId, error } = subtask;
  const after = dependsOn.length === 0 ? '' : ` after ${dependsOn.join(', ')}`;
  const facts = [
    state,
    ...(tries > 1 ? [`try ${tries}`] : []),
    ...(tries > 0 ? [childDuration(subtask), costText(subtask)] : []),
    ...(taskId === undefined ? [] : [`task ${taskId}`]),
  ];
  return `${id} (${agent})${after}  ${facts.join(', ')}  “${oneLine(name)}”${errorText(error)}`;
}

function textLines({ texts, subtasks, result }: TaskRecord): readonly string[] {
  const lines = subtasks.flatMap(({ id }) => {
    const { instructions = '', expected, result: said } = texts[id] ?? {};
    return [
      `  ${id}: ${instructions}`,
      ...(expected === undefined ? [] : [`    expected: ${expected}`]),
      ...(said === undefined ? [] : [`    result: ${said}`]),
    ];
  });
  return [...lines, ...(result === undefined ? [] : [`  result: ${result}`])];
}

type Usage = Pick<SubtaskView, 'tokens' | 'cost'>;

function sumOf(subtasks: readonly Usage[]): Usage {
  const sum = (count: (each: Usage) => number) => subtasks.reduce((total, each) => total + count(each), 0);
  return { tokens: sum((each) => each.tokens), cost: sum((each) => each.cost) };
}

function costText({ tokens, cost }: Usage): string {
  return `tokens: ${tokens}, cost $${(cost / 1e6).toFixed(4)}`;
}

function errorText(error: string | undefined): string {
  return error === undefined ? '' : `: ${oneLine(error)}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 100).toWellFormed();
}
