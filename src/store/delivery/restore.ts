import { createHash } from 'node:crypto';
import type { StoreCommand, StoreQuery } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { lockLanes } from '../rows/lane.ts';
import { endPart } from './end-part.ts';
import { distrustSending } from './part.ts';

/** A restore that was acted on: the time of its backup, ISO 8601, and how many parts became unknown. */
export type ActedRestore = { readonly madeAt: string; readonly parts: number };

/**
 * Ends all pending parts as unknown, once after a restore, because they may have been sent since the backup was made.
 * The operator decides about each. Parts in `sending` are looked up, or also end as unknown, when they are claimed:
 * their processes' journals are newer than the backup and no longer contain calls that have ended. The database itself
 * records that it was restored, so the first process to open it acts, on whichever machine. Every browser has to sign
 * in again, because the backup may contain sessions that were signed out since. Returns undefined without a restore.
 */
export const endPartsAfterRestore: StoreCommand<Record<never, never>, ActedRestore | undefined> = {
  name: 'endPartsAfterRestore',
  run: async (tx) => {
    // Processes that start together wait here for the first one's commit, and then find nothing.
    const restores = await tx.db
      .updateTable('restores')
      .set({ isActed: 1 })
      .where('isActed', '=', 0)
      .returning('madeAt')
      .execute();
    const madeAt = restores
      .map((restore) => restore.madeAt)
      .toSorted()
      .at(-1);
    if (madeAt === undefined) return undefined;
    const parts = await tx.db
      .selectFrom('outbox')
      .select(['key', 'laneKey'])
      .where(isOpenPart())
      .where('state', '=', 'pending')
      .execute();
    await lockLanes(tx, [...new Set(parts.flatMap(({ laneKey }) => laneKey ?? []))].sort());
    const problem = `restored from a backup made at ${madeAt}; it may have been sent since`;
    for (const { key } of parts) await endPart(tx, { key, state: 'unknown', problem });
    await distrustSending(tx);
    await tx.db.deleteFrom('signIns').execute();
    // A token that was revoked since the backup must not come back.
    await tx.db.updateTable('tokens').set({ revokedAt: tx.now }).where('revokedAt', 'is', null).execute();
    return { madeAt, parts: parts.length };
  },
};

/**
 * Reads a mark that identifies the restores that the database has been through; empty if there were none. A position
 * that was read under another mark is meaningless: its row may be gone, and another row may have its number.
 */
export const readRestoreMark: StoreQuery<Record<never, never>, string> = {
  query: 'readRestoreMark',
  run: async (tx) => {
    const restores = await tx.db.selectFrom('restores').select('id').orderBy('id').execute();
    if (restores.length === 0) return '';
    const ids = restores.map(({ id }) => id).join();
    return createHash('sha256').update(ids).digest('base64url').slice(0, 12);
  },
};
