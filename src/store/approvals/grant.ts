/** Calls that a person has allowed for longer: exactly the call that was shown, in the conversation where it was asked. */
import { type Authority, lowestAuthority } from '#contracts/outcome.ts';
import type { StepTx, StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { isUnrevokedGrant } from '../base/index-predicates.ts';
import { ensureRow, readRow } from '../base/row-access.ts';
import { type CallApproval, readCause } from './call-approval.ts';

/** How long a grant lasts, ms. */
const grantMs = 30 * 86_400_000;

/** Stores the grant of an approved question. Safe to repeat: it has the question's id. */
export async function insertGrant(
  tx: Tx,
  { id, grantLane, tool, digest, shown, runAuthority }: CallApproval,
  by: string,
): Promise<void> {
  await ensureRow(tx, 'grants', {
    ...{ id, tool, digest, shown },
    laneKey: grantLane,
    authority: runAuthority,
    grantedBy: by,
    createdAt: tx.now,
    expiresAt: tx.now + grantMs,
  });
}

/** A call that may be covered by a grant. */
export type GrantSearch = {
  readonly runId: string;
  readonly tool: string;
  readonly digest: string;
  readonly authority: Authority;
};

/**
 * Says whether a grant covers the call of a run: not if the run is less trusted than the one for which it was granted,
 * and not if the run has read what others wrote in its group, since their words may have led to the call.
 */
export const isGranted: StoreQuery<GrantSearch, boolean> = {
  query: 'isGranted',
  usesClock: true,
  run: async (tx, { runId, tool, digest, authority }) => {
    const { grantLane } = await readCause(tx, runId);
    const rows = await tx.db
      .selectFrom('grants')
      .select('authority')
      .where(isUnrevokedGrant())
      .where('laneKey', '=', grantLane)
      .where('tool', '=', tool)
      .where('digest', '=', digest)
      .where('expiresAt', '>', tx.now)
      .execute();
    // Written from the authority of a run.
    const covers = rows.some(
      (row) => lowestAuthority(authority, row.authority as Authority) === row.authority,
    );
    return covers && !(await hasReadOthers(tx, runId, grantLane));
  },
};

async function hasReadOthers(tx: Tx, runId: string, grantLane: string): Promise<boolean> {
  const { treeId } = await readRow(tx, 'runs', runId, ['treeId']);
  const others = await tx.db
    .selectFrom('groupContext')
    .select('seq')
    .where('laneKey', '=', grantLane)
    .where('shownInRun', 'in', [runId, treeId])
    .where('conversationKey', '<>', '')
    .limit(1)
    .executeTakeFirst();
  return others !== undefined;
}

/** A grant in force. */
export type Grant = {
  readonly id: string;
  readonly laneKey: string;
  readonly tool: string;
  readonly shown: string;
  readonly grantedBy: string;
  readonly expiresAt: number;
};

const maxGrants = 200;

/** Reads the grants in force, newest first; with `laneKey`, only those of that lane. */
export const readGrants: StoreQuery<{ readonly laneKey?: string | undefined }, readonly Grant[]> = {
  query: 'readGrants',
  usesClock: true,
  run: async (tx, { laneKey }) => {
    let query = tx.db
      .selectFrom('grants')
      .select(['id', 'laneKey', 'tool', 'shown', 'grantedBy', 'expiresAt'])
      .where(isUnrevokedGrant())
      .where('expiresAt', '>', tx.now)
      .orderBy('createdAt', 'desc')
      .limit(maxGrants);
    if (laneKey !== undefined) query = query.where('laneKey', '=', laneKey);
    return query.execute();
  },
};

/** Revokes a grant; returns false if none with that id is in force. `laneKey`: it must be one of that lane's. */
export async function endGrant(
  tx: StepTx,
  { id, by, laneKey }: { readonly id: string; readonly by: string; readonly laneKey?: string | undefined },
): Promise<boolean> {
  let ending = tx.db
    .updateTable('grants')
    .set({ revokedBy: by, endedAt: tx.now })
    .where('id', '=', id)
    .where('endedAt', 'is', null)
    .where('expiresAt', '>', tx.now);
  if (laneKey !== undefined) ending = ending.where('laneKey', '=', laneKey);
  const { numUpdatedRows } = await ending.executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** Revokes a grant as the operator. */
export const revokeGrant: StoreCommand<{ readonly id: string; readonly by: string }, boolean> = {
  name: 'revokeGrant',
  run: endGrant,
};
