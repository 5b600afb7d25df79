import type { Selectable } from 'kysely';
import type {
  ChildMode,
  ChildRecord,
  ChildRole,
  ForkPoint,
  SpawnLimits,
  SpawnRefusal,
} from '#contracts/child.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { type LaneSpec, newRowId } from '../base/keys.ts';
import type { QueryParams } from '../base/prepared.ts';
import { ensureRow, locking, readRow } from '../base/row-access.ts';
import type { Tables } from '../base/tables.ts';
import { enqueueItem } from '../items/enqueue-item.ts';
import { lockLaneAt } from '../rows/lane.ts';
import { assertRunActive, type RunFence } from '../rows/run.ts';
import {
  type Child,
  childIdOf,
  innerContent,
  insertChild,
  readChild,
  readLiveChildren,
  recordOf,
} from './child.ts';

export type SpawnInput = RunFence & {
  readonly callId: string;
  readonly task: string;
  readonly agentId: string;
  readonly label?: string;
  /** Name of the model that its session uses; absent: its agent's. */
  readonly model?: string;
  readonly mode: ChildMode;
  readonly context: 'isolated' | 'fork';
  /** Longest time from its first claim, ms; absent: as long as its tree. */
  readonly timeoutMs?: number;
  readonly role: ChildRole;
  readonly limits: SpawnLimits;
  /** Its lane, whose key the codec makes from `childIdOf` and the parent's key; `newSessionId` isn't used. */
  readonly lane: LaneSpec;
};

export type SpawnResult =
  | {
      readonly kind: 'spawned' | 'attached';
      readonly child: ChildRecord;
      /** Id of its first run. */
      readonly runId: string;
      readonly effects: Effects;
    }
  | { readonly kind: 'refused'; readonly reason: SpawnRefusal; readonly limit: number };

/**
 * Gives a task of the run to a child. Its row, session, lane and first item are one commit, together with the check of
 * the limits. The call is the idempotency key: a repeat returns the same child. Throws `stale_epoch`, and
 * `invalid_input` for a run that was asked to stop or has ended.
 */
export const spawnChild: StoreCommand<SpawnInput, SpawnResult> = {
  name: 'spawnChild',
  run: async (tx, input) => {
    await lockLaneAt(tx, input.laneKey, input.epoch);
    const run = await readRow(tx, 'runs', input.runId, ['sessionId', 'treeId', 'route', 'authority']);
    const id = childIdOf({ ...input, sessionId: run.sessionId });
    const known = await readChild(tx, id);
    if (known) return { kind: 'attached', ...(await spawnedOf(tx, known)), effects: noEffects() };
    await assertRunActive(tx, input.runId);
    const parent = await readChild(tx, run.sessionId);
    const depth = (parent?.depth ?? 0) + 1;
    const refusal = await refusalOf(tx, { depth, sessionId: run.sessionId, limits: input.limits });
    if (refusal) return refusal;
    const tree = await reserve(tx, { treeId: run.treeId, sessionId: run.sessionId, limits: input.limits });
    if (tree.kind === 'refused') return tree;
    const { laneKey: parentLaneKey, runId: parentRunId, callId: parentCallId } = input;
    const { agentId, task, mode, label = null, timeoutMs = null, role } = input;
    if (input.lane.class !== `sub-${depth}` || role.depth !== depth)
      throw new ParleyError('invalid_input', `The child's lane and role must have depth ${depth}.`);
    const child = await insertChild(tx, {
      ...{ id, treeId: run.treeId, depth, agentId, task, mode, label, timeoutMs },
      ...{ parentSessionId: run.sessionId, parentLaneKey, parentRunId, parentCallId },
      ...{ laneKey: input.lane.key, laneClass: input.lane.class },
      ...{ route: run.route, authority: run.authority, deadlineAt: tree.deadlineAt },
    });
    const effects = noEffects();
    await openSession(tx, { ...input, child }, effects);
    return { kind: 'spawned', ...(await spawnedOf(tx, child)), effects };
  },
};

async function spawnedOf(tx: Tx, child: Child): Promise<{ child: ChildRecord; runId: string }> {
  const { reservedRunId } = await tx.db
    .selectFrom('inbox')
    .select('reservedRunId')
    .where('sourceKey', '=', taskKeyOf(child.id))
    .executeTakeFirstOrThrow();
  return { child: recordOf(child), runId: reservedRunId ?? '' };
}

/** Returns the source key of the item that contains the child's task. */
function taskKeyOf(id: string): string {
  return `spawn:${id}`;
}

type SpawnRefusalResult = Extract<SpawnResult, { kind: 'refused' }>;

/** Checks the parent's own limits. The lane's lock keeps two steps from counting its children at the same time. */
async function refusalOf(
  tx: Tx,
  input: { readonly depth: number; readonly sessionId: string; readonly limits: SpawnLimits },
): Promise<SpawnRefusalResult | undefined> {
  const { depth, sessionId, limits } = input;
  if (depth > limits.depth) return { kind: 'refused', reason: 'too_deep', limit: limits.depth };
  const live = await readLiveChildren(tx, { sessionIds: [sessionId] });
  if (live.filter(({ mode }) => mode !== 'task').length < limits.children) return undefined;
  return { kind: 'refused', reason: 'too_many_children', limit: limits.children };
}

/** Counts a new node of the tree, under the row's lock, since runs of several lanes share the tree. */
async function reserve(
  tx: Tx,
  input: { readonly treeId: string; readonly sessionId: string; readonly limits: SpawnLimits },
): Promise<SpawnRefusalResult | { readonly kind: 'reserved'; readonly deadlineAt: number }> {
  const { treeId, limits } = input;
  const { live, total, deadlineAt } = await lockTree(tx, { ...input, treeMs: limits.treeMs });
  const refused = (reason: SpawnRefusal, limit: number) => ({ kind: 'refused', reason, limit }) as const;
  if (tx.now >= deadlineAt) return refused('tree_out_of_time', Math.round(limits.treeMs / 1000));
  if (total >= limits.lifetime) return refused('tree_exhausted', limits.lifetime);
  if (live >= limits.nodes) return refused('tree_full', limits.nodes);
  await tx.db
    .updateTable('trees')
    .set({ live: live + 1, total: total + 1 })
    .where('id', '=', treeId)
    .execute();
  return { kind: 'reserved', deadlineAt };
}

/** Locks the tree's row, which begins with its first child or graph. */
export async function lockTree(
  tx: Tx,
  {
    treeId,
    sessionId,
    treeMs,
  }: { readonly treeId: string; readonly sessionId: string; readonly treeMs: number },
): Promise<Selectable<Tables['trees']>> {
  const fresh = { live: 0, total: 0, createdAt: tx.now, deadlineAt: tx.now + treeMs };
  await ensureRow(tx, 'trees', { id: treeId, sessionId, ...fresh });
  return lockedTree.one(tx, { treeId });
}

const lockedTree = locking((db, of: QueryParams<{ treeId: string }>) =>
  db.selectFrom('trees').selectAll().where('id', '=', of.treeId),
);

type SessionOpening = Pick<SpawnInput, 'lane' | 'role' | 'context' | 'model'> & {
  readonly child: Child;
  /** The task as its model reads it; absent: as it was given. */
  readonly prompt?: string;
};

/** Makes the child's lane and session with its task as the first item. */
export async function openSession(
  tx: StepTx,
  { child, prompt, ...input }: SessionOpening,
  effects: Effects,
): Promise<void> {
  const { id, parentSessionId } = child;
  await enqueueItem(
    tx,
    { ...input.lane, newSessionId: id },
    {
      id: newRowId(),
      source: 'child',
      sourceKey: taskKeyOf(id),
      reservedRunId: newRowId(),
      reach: 'mode',
      target: 'record',
      // The store wrote the authority at the start of the run.
      authority: child.authority as Authority,
      content: innerContent(tx, child.task, prompt),
    },
    effects,
  );
  const parent = await readRow(tx, 'sessions', parentSessionId, [
    'ancestors',
    'summaryMessageId',
    'keptFrom',
    'messageCount',
  ]);
  const forked = input.context === 'fork' ? await forkPoint(tx, { ...parent, child }) : undefined;
  await tx.db
    .updateTable('sessions')
    .set({
      parentSessionId,
      role: JSON.stringify(input.role),
      model: input.model ?? null,
      ancestors: JSON.stringify([...json.strings(parent.ancestors), parentSessionId]),
      forkedFrom: forked ? JSON.stringify(forked) : null,
    })
    .where('id', '=', id)
    .where('key', '=', child.laneKey)
    .execute();
}

/** Returns the parent's history before the message that spawned the child. */
async function forkPoint(
  tx: Tx,
  from: {
    readonly child: Child;
    readonly summaryMessageId: string | null;
    readonly keptFrom: number;
    readonly messageCount: number;
  },
): Promise<ForkPoint> {
  const { parentSessionId, parentRunId, parentCallId } = from.child;
  const message = await tx.db
    .selectFrom('toolCalls')
    .innerJoin('transcript', 'transcript.id', 'toolCalls.messageId')
    .select('transcript.position')
    .where('toolCalls.runId', '=', parentRunId)
    .where('toolCalls.callId', '=', parentCallId)
    .orderBy('transcript.position', 'desc')
    .executeTakeFirst();
  const position = message?.position ?? from.messageCount;
  const { summaryMessageId, keptFrom } = from;
  return { sessionId: parentSessionId, summaryMessageId, keptFrom, position };
}
