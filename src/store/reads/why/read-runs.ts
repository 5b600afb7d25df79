import { waitExpired } from '#contracts/message.ts';
import type { CacheMiss } from '#contracts/model.ts';
import { coordinatorItself } from '#contracts/task.ts';
import type { Tx } from '../../base/command.ts';
import { json } from '../../base/json.ts';
import { excerptOf } from '../../base/one-line.ts';
import { withoutNulls } from '../../base/row-access.ts';
import type { CallDoubt } from '../../money/model-call.ts';
import { taskItemsOf } from '../../tasks/task.ts';

/** Reads the runs with these ids, in the order in which they began. */
export async function readRuns(tx: Tx, ids: readonly string[]): Promise<readonly RunFacts[]> {
  if (ids.length === 0) return [];
  const runs: RunFacts[] = [];
  for (const row of await runRows(tx, ids)) runs.push(await factsOf(tx, row));
  return runs.sort((a, b) => a.startedAt - b.startedAt);
}

type Row = Awaited<ReturnType<typeof runRows>>[number];

function runRows(tx: Tx, ids: readonly string[]) {
  return tx.db
    .selectFrom('runs')
    .select(['id', 'laneKey', 'sessionId', 'authority', 'state', 'attempts', 'isHandedOver', 'cancelReason'])
    .select(['endReason', 'detail', 'parkedAt', 'parkReason', 'startedAt', 'endedAt'])
    .where('id', 'in', ids)
    .execute();
}

/** A run as shown by `why`. */
export type RunFacts = Awaited<ReturnType<typeof factsOf>>;

async function factsOf(tx: Tx, row: Row) {
  return {
    ...withoutNulls(row),
    /** It was handed over on purpose and hasn't been resumed yet. */
    isHandedOver: row.isHandedOver === 1 && row.parkedAt === null,
    toolCalls: await readToolCalls(tx, row.id),
    modelCalls: await readModelCalls(tx, row.id),
    /** Summaries with which it has replaced older parts of its session's history. */
    summaries: await readSummaries(tx, row),
    /** Its messages, in order. */
    transcript: await readMessages(tx, row),
  };
}

/** A tool call as shown by `why`; times in ms. */
export type ToolCallFacts = Awaited<ReturnType<typeof readToolCalls>>[number];

async function readToolCalls(tx: Tx, runId: string) {
  const rows = await tx.db
    .selectFrom('toolCalls')
    .select(['callId', 'messageId', 'name', 'state', 'isError', 'startedAt', 'endedAt'])
    // Every such result contains these words, whatever it begins with.
    .select((eb) => eb('result', 'like', '%outcome unknown%').as('isUnknown'))
    .select((eb) => eb('result', 'like', `%${waitExpired}%`).as('isExpired'))
    .where('runId', '=', runId)
    .orderBy('startedAt')
    .orderBy('ordinal')
    .execute();
  return rows.map(({ isError, isUnknown, isExpired, ...row }) => ({
    ...withoutNulls(row),
    isError: isError === 1,
    /** It was interrupted after it had started, so whether it had its effect is unknown. */
    isUnknown: isError === 1 && Boolean(isUnknown),
    /** The answer that it waited for didn't come in time. */
    isExpired: isError === 1 && Boolean(isExpired),
  }));
}

/** A model call as shown by `why`. */
export type ModelCallFacts = Awaited<ReturnType<typeof readModelCalls>>[number];

async function readModelCalls(tx: Tx, runId: string) {
  const rows = await tx.db
    .selectFrom('modelCalls')
    .select([
      'model',
      'purpose',
      'state',
      'inputTokens',
      'outputTokens',
      'cacheReadTokens',
      'cacheWriteTokens',
    ])
    .select(['cost', 'latencyMs', 'withoutTools', 'rate', 'at'])
    .where('runId', '=', runId)
    .orderBy('at')
    .execute();
  return rows.map(({ withoutTools, rate, ...row }) => ({
    ...row,
    isWithoutTools: withoutTools === 1,
    ...notesIn(rate),
  }));
}

/** Returns why a call's count is in doubt and why its cache wasn't used; an open call's row has the rate there. */
function notesIn(rate: string | null): { readonly doubt?: CallDoubt; readonly cacheMiss?: CacheMiss } {
  if (rate === null) return {};
  const { doubt, cacheMiss } = json.values(rate) as { doubt?: CallDoubt; cacheMiss?: CacheMiss };
  return { ...(doubt && { doubt }), ...(cacheMiss && { cacheMiss }) };
}

function readSummaries(tx: Tx, { id, sessionId }: Row) {
  return tx.db
    .selectFrom('transcript')
    .select(['id', 'createdAt as at'])
    .where('sessionId', '=', sessionId)
    .where('isSummary', '=', 1)
    .where('runId', '=', id)
    .orderBy('position')
    .execute();
}

/** More messages than a run has, including notes by others in between. */
const maxMessages = 1000;

/** Reads a run's messages. The transcript is indexed by session; a run's messages begin where it took its first one. */
async function readMessages(tx: Tx, { id, sessionId }: Row) {
  const first = await tx.db
    .selectFrom('inbox')
    .innerJoin('transcript', 'transcript.id', 'inbox.transcriptId')
    .select((eb) => eb.fn.min('transcript.position').as('position'))
    .where('inbox.runId', '=', id)
    .where('transcript.sessionId', '=', sessionId)
    .executeTakeFirst();
  if (first?.position == null) return [];
  const rows = await tx.db
    .selectFrom('transcript')
    .select(['id', 'role', 'createdAt as at', 'runId'])
    .where('sessionId', '=', sessionId)
    // Overheard messages that the run was shown may come just before it.
    .where('position', '>=', Number(first.position) - 2)
    .orderBy('position')
    .limit(maxMessages)
    .execute();
  return rows.filter((row) => row.runId === id).map(({ runId: _, ...message }) => message);
}

/** A sub-agent as shown by `why`. */
export type ChildFacts = Awaited<ReturnType<typeof readChildren>>[number];

export type TreeSeeds = {
  readonly runIds: readonly string[];
  /** Tasks that may not have a run yet. */
  readonly taskIds: readonly string[];
};

/**
 * Follows runs through the sub-agents and tasks of their trees. The returned `runIds` are the given runs, all runs of
 * their trees, up and down, and the runs to which the children's ends were announced.
 */
export async function readTree(
  tx: Tx,
  { runIds, taskIds }: TreeSeeds,
  asking: { readonly withExcerpts: boolean },
) {
  const runs =
    runIds.length === 0
      ? []
      : await tx.db.selectFrom('runs').select(['treeId', 'sessionId']).where('id', 'in', runIds).execute();
  const treeIds = [...new Set(runs.map(({ treeId }) => treeId))];
  const children = treeIds.length === 0 ? [] : await readChildren(tx, treeIds, asking);
  const trees =
    treeIds.length === 0
      ? []
      : await tx.db.selectFrom('trees').select('sessionId').where('id', 'in', treeIds).execute();
  const sessionIds = [...runs, ...trees].map(({ sessionId }) => sessionId);
  const coordinators = [...new Set([...sessionIds, ...children.map(({ id }) => id)])];
  const tasks = await readTasks(tx, { taskIds, treeIds, sessionIds: coordinators }, asking);
  const laneKeys = children.map(({ laneKey }) => laneKey);
  const sourceKeys = [...children.map(({ id }) => `child:${id}`), ...tasks.flatMap(itemKeysOf)];
  const items =
    sourceKeys.length === 0
      ? []
      : await tx.db
          .selectFrom('inbox')
          .select('runId')
          .where((eb) =>
            eb.or([
              ...(laneKeys.length === 0 ? [] : [eb('laneKey', 'in', laneKeys)]),
              eb('sourceKey', 'in', sourceKeys),
            ]),
          )
          .execute();
  const all = [
    ...runIds,
    ...children.map(({ parentRunId }) => parentRunId),
    ...items.flatMap(({ runId }) => runId ?? []),
  ];
  return { children, tasks, runIds: [...new Set(all)] };
}

async function readChildren(
  tx: Tx,
  treeIds: readonly string[],
  { withExcerpts }: { readonly withExcerpts: boolean },
) {
  const rows = await tx.db
    .selectFrom('children')
    .select(['id', 'depth', 'agentId', 'laneKey', 'parentRunId', 'parentCallId', 'mode', 'state'])
    .select(['status', 'told', 'promptTokens', 'completionTokens', 'cost', 'createdAt', 'endedAt'])
    .select(['label', 'task'])
    .where('treeId', 'in', treeIds)
    .orderBy('createdAt')
    .execute();
  return rows.map(({ label, task, promptTokens, completionTokens, ...row }) => ({
    ...withoutNulls(row),
    tokens: promptTokens + completionTokens,
    /** The subtask of its task; its parent's call made that. */
    ...(row.mode === 'task' && label !== null && { subtaskId: label }),
    ...(withExcerpts && { excerpt: excerptOf(label ?? task) }),
  }));
}

/** A task as shown by `why`. */
export type TaskFacts = Awaited<ReturnType<typeof readTasks>>[number];

type TaskRequest = {
  readonly taskIds: readonly string[];
  readonly treeIds: readonly string[];
  /** The sessions of those trees. */
  readonly sessionIds: readonly string[];
};

async function readTasks(
  tx: Tx,
  { taskIds, treeIds, sessionIds }: TaskRequest,
  { withExcerpts }: { readonly withExcerpts: boolean },
) {
  const rows = [
    ...(taskIds.length === 0 ? [] : await taskRows(tx).where('id', 'in', taskIds).execute()),
    ...(sessionIds.length === 0
      ? []
      : await taskRows(tx).where('sessionId', 'in', sessionIds).where('treeId', 'in', treeIds).execute()),
  ];
  const tasks = [...new Map(rows.map((row) => [row.id, row])).values()];
  const subtasks = tasks.length === 0 ? [] : await readSubtasks(tx, tasks);
  return tasks
    .sort((a, b) => a.createdAt - b.createdAt)
    .map(({ title, ...task }) => ({
      ...withoutNulls(task),
      subtasks: subtasks.filter(({ taskId }) => taskId === task.id).map(({ taskId: _, ...one }) => one),
      ...(withExcerpts && { excerpt: excerptOf(title) }),
    }));
}

function taskRows(tx: Tx) {
  return tx.db
    .selectFrom('tasks')
    .select(['id', 'parentTaskId', 'parentSubtaskId', 'laneKey', 'agentId', 'runId', 'callId', 'caller'])
    .select(['title', 'mode', 'state', 'error', 'told', 'rounds', 'createdAt', 'endedAt']);
}

async function readSubtasks(tx: Tx, tasks: readonly { readonly id: string }[]) {
  const rows = await tx.db
    .selectFrom('subtasks')
    .select(['taskId', 'id', 'agentId', 'state', 'tries', 'childId', 'error', 'startedAt', 'endedAt'])
    .where(
      'taskId',
      'in',
      tasks.map(({ id }) => id),
    )
    .orderBy('ordinal')
    .execute();
  return rows.map(withoutNulls);
}

/** Returns the source keys of the items that the task has put into its coordinator's lane. */
function itemKeysOf({ id, rounds, subtasks }: TaskFacts): readonly string[] {
  const upTo = (count: number) => Array.from({ length: count }, (_, n) => n + 1);
  const own = subtasks.filter(({ agentId }) => agentId === coordinatorItself);
  const names = [
    'main',
    ...upTo(rounds).map((round) => `:${round}`),
    ...own.flatMap((one) => upTo(one.tries).map((tried) => `${one.id}:${tried}`)),
  ];
  return names.map((name) => `${taskItemsOf(id)}${name}`);
}
