/** Writes the states of children; no other file does: `queued → running → done`, and their one end. */

import { createHash } from 'node:crypto';
import type { Selectable } from 'kysely';
import type { ChildStatus, ChildTold, ChildUsage } from '#contracts/child.ts';
import type { Tx } from '../base/command.ts';
import { insertRow } from '../base/insert-row.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow } from '../base/row-by-key.ts';
import type { Tables } from '../base/tables.ts';

/** A sub-agent's row. */
export type Child = Selectable<Tables['children']>;

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Returns the id of the call's child, and of its session: 80 bits of a hash, in base32. The run is part of the hash,
 * since servers repeat call ids.
 */
export function childIdOf(call: {
  readonly sessionId: string;
  readonly runId: string;
  readonly callId: string;
}): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([call.sessionId, call.runId, call.callId]))
    .digest();
  let bits = 0n;
  for (const byte of hash.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  return Array.from({ length: 16 }, (_, n) => alphabet[Number((bits >> BigInt(75 - 5 * n)) & 31n)]).join('');
}

/** Says whether the lane is a child's: only those keys begin with the codec's reserved word. */
export function isChildLane(laneKey: string): boolean {
  return laneKey.startsWith('agent:');
}

/** Reads the child with that id; undefined when there is none. */
export function readChild(tx: Tx, id: string): Promise<Child | undefined> {
  return childById.first(tx, { id });
}

const childById = prepared((db, of: QueryParams<{ id: string }>) =>
  db.selectFrom('children').selectAll().where('id', '=', of.id),
);

/** Reads the child that works in the lane. */
export function readChildIn(tx: Tx, laneKey: string): Promise<Child | undefined> {
  return childByLane.first(tx, { laneKey });
}

const childByLane = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db.selectFrom('children').selectAll().where('laneKey', '=', of.laneKey),
);

/** Reads the sessions' children that haven't ended, oldest first; with `runIds`, only those of these runs. */
export function readLiveChildren(
  tx: Tx,
  {
    sessionIds,
    runIds,
  }: { readonly sessionIds: readonly string[]; readonly runIds?: readonly string[] | undefined },
): Promise<readonly Child[]> {
  let query = tx.db
    .selectFrom('children')
    .selectAll()
    .where('parentSessionId', 'in', sessionIds)
    .where('endedAt', 'is', null)
    .orderBy('createdAt')
    .orderBy('id');
  if (runIds !== undefined) query = query.where('parentRunId', 'in', runIds);
  return query.execute();
}

type Fresh = 'state' | 'status' | 'result' | 'told' | 'stopReason' | 'stopAt';
type Times = 'createdAt' | 'startedAt' | 'endedAt' | 'archivedAt';
export type NewChild = Omit<Child, Fresh | Times | keyof ChildUsage>;

/** Stores a new child, queued. Throws when one with that id exists. */
export async function insertChild(tx: Tx, spawned: NewChild): Promise<Child> {
  const child = {
    ...spawned,
    ...{ state: 'queued', createdAt: tx.now, promptTokens: 0, completionTokens: 0, cost: 0 },
    ...{ status: null, result: null, told: null, stopReason: null, stopAt: null },
    ...{ startedAt: null, endedAt: null, archivedAt: null },
  } satisfies Child;
  await insertRow(tx, 'children', child);
  return child;
}

/** Marks the child as running at its lane's first claim, which starts its time limit. Repeating changes nothing. */
export async function startChild(tx: Tx, { id, timeoutMs, deadlineAt }: Child): Promise<void> {
  const ownDeadline = timeoutMs === null ? deadlineAt : tx.now + timeoutMs;
  await tx.db
    .updateTable('children')
    .set({ state: 'running', startedAt: tx.now, deadlineAt: Math.min(deadlineAt, ownDeadline) })
    .where('id', '=', id)
    .where('state', '=', 'queued')
    .execute();
}

export type StopMark = { readonly reason: string; readonly stopAt: number };

/** Records that the child has to stop. `overrides`: the reason replaces an earlier one. */
export async function markStopping(
  tx: Tx,
  child: Child,
  { reason, stopAt, overrides }: StopMark & { readonly overrides: boolean },
): Promise<Child> {
  const stopReason = child.stopReason === null || overrides ? reason : child.stopReason;
  const mark = { stopReason, stopAt: child.stopAt ?? stopAt };
  await changeRow(tx, 'children', child.id, mark);
  return { ...child, ...mark };
}

export type ChildEnd = {
  readonly status: ChildStatus;
  readonly result: string;
  readonly usage: ChildUsage;
  readonly told: ChildTold;
};

/** Ends the child, which writes its final record. */
export async function endChild(tx: Tx, id: string, { status, result, usage, told }: ChildEnd): Promise<void> {
  await tx.db
    .updateTable('children')
    .set({ state: 'done', status, result, told, endedAt: tx.now, ...usage })
    .where('id', '=', id)
    .where('state', '<>', 'done')
    .execute();
}

/** Removes an ended child from the lists of recent ones. Its row and transcript stay. */
export async function archiveChild(tx: Tx, id: string): Promise<void> {
  await tx.db
    .updateTable('children')
    .set({ archivedAt: tx.now })
    .where('id', '=', id)
    .where('archivedAt', 'is', null)
    .execute();
}
