/**
 * Writes what becomes of alerts to the owner, and nothing else does: opened, told, dismissed, ended. Part of the
 * transaction in which the trouble happens, where that is the store's own; the outbox tells it afterwards
 * (`delivery/queue-alert-message.ts`).
 */

import { sql } from 'kysely';
import { type Alert, type AlertKind, isLasting } from '#contracts/owner-alert.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { changeRow } from '../base/row-by-key.ts';

/** An event that happens so long after the last notice about its kind and subject gets another one, ms. */
const tellAgainMs = 86_400_000;

/**
 * Opens a notice, or counts the trouble on the one that is open. A problem that returns before its end was
 * reported continues under the same notice. True when a notice was opened.
 */
export async function openAlert(tx: Tx, { kind, subject, values = {} }: Alert): Promise<boolean> {
  const details = JSON.stringify(values);
  const isState = isLasting(kind);
  if (isState && (await reopen(tx, { kind, subject, details }))) return false;
  const before = isState ? 0 : await endOld(tx, { kind, subject });
  const id = crypto.randomUUID();
  const row = await tx.db
    .insertInto('ownerNotices')
    .values({ id, kind, subject, details, raisedAt: tx.now, lastAt: tx.now, isPending: 1, count: before + 1 })
    .onConflict((conflict) =>
      conflict
        .columns(['kind', 'subject'])
        .where('endedAt', 'is', null)
        .doUpdateSet((eb) => ({
          details,
          lastAt: tx.now,
          // A state that is reported again is the same state.
          count: eb('ownerNotices.count', '+', isState ? 0 : 1),
        })),
    )
    .returning('id')
    .executeTakeFirstOrThrow();
  return row.id === id;
}

/** Ends a notice that was sent to the owner long ago; returns how often its event had happened. */
async function endOld(tx: Tx, { kind, subject }: Pick<Alert, 'kind' | 'subject'>): Promise<number> {
  const row = await tx.db
    .updateTable('ownerNotices')
    .set({ endedAt: tx.now })
    .where('kind', '=', kind)
    .where('subject', '=', subject)
    .where('endedAt', 'is', null)
    .where('toldAt', '<=', tx.now - tellAgainMs)
    .returning('count')
    .executeTakeFirst();
  return row?.count ?? 0;
}

type ReopenInput = { readonly kind: AlertKind; readonly subject: string; readonly details: string };

async function reopen(tx: Tx, { kind, subject, details }: ReopenInput): Promise<boolean> {
  const row = await tx.db
    .updateTable('ownerNotices')
    .set((eb) => ({ details, endedAt: null, lastAt: tx.now, isPending: 0, count: eb('count', '+', 1) }))
    .where(isPending())
    .where('kind', '=', kind)
    .where('subject', '=', subject)
    .where('endedAt', 'is not', null)
    .returning('id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Kind and subject of an alert: two that share them are the same. */
export type AlertName = Pick<Alert, 'kind' | 'subject'>;

/** Names an alert that is over. */
export type TroubleEnd = AlertName & {
  /** The owner knows, or need not. */
  readonly isSilent?: boolean;
};

/** Ends the notice, if one is open. The owner is notified of the end of a reported state. */
export async function closeAlert(tx: Tx, { kind, subject, isSilent = false }: TroubleEnd): Promise<void> {
  const isTold = isLasting(kind) && !isSilent;
  await tx.db
    .updateTable('ownerNotices')
    .set((eb) => ({
      endedAt: tx.now,
      isPending: isTold
        ? eb
            .case()
            .when(eb.and([eb('partKey', 'is not', null), eb('dismissedAt', 'is', null)]))
            .then(sql.lit(1))
            .else(sql.lit(0))
            .end()
        : 0,
    }))
    .where('kind', '=', kind)
    .where('subject', '=', subject)
    .where('endedAt', 'is', null)
    .execute();
}

type ToldAlert = { readonly id: string; readonly toldAt: number | null; readonly partKey: string | null };

/** Records that the step was told to the owner. `partKey`: the part that tells it, if one does; the first one stays. */
export async function markTold(tx: Tx, alert: ToldAlert, partKey: string | undefined): Promise<void> {
  await changeRow(tx, 'ownerNotices', alert.id, {
    isPending: 0,
    toldAt: alert.toldAt ?? tx.now,
    partKey: alert.partKey ?? partKey ?? null,
  });
}

/** The parts that tell an owner are named so. */
export const ownerPartPrefix = 'owner:';

/** As the partial index says it, word for word. */
export function isPending() {
  return sql<boolean>`"ownerNotices"."isPending" = 1`;
}

/** Safe to repeat: a trouble has one open notice. True when it was opened by this. */
export const raiseAlert: StoreCommand<Alert, boolean> = {
  name: 'raiseAlert',
  run: openAlert,
};

/** Whether a trouble is noted and has not ended; dismissed ones count. */
export const isAlertOpen: StoreQuery<Pick<Alert, 'kind' | 'subject'>, boolean> = {
  query: 'isAlertOpen',
  run: async (tx, { kind, subject }) => {
    const row = await tx.db
      .selectFrom('ownerNotices')
      .select('id')
      .where('kind', '=', kind)
      .where('subject', '=', subject)
      .where('endedAt', 'is', null)
      .executeTakeFirst();
    return row !== undefined;
  },
};

/** The alerts that have not ended; dismissed ones count. */
export const readOpenAlerts: StoreQuery<Record<never, never>, readonly AlertName[]> = {
  query: 'readOpenAlerts',
  run: (tx) =>
    tx.db.selectFrom('ownerNotices').select(['kind', 'subject']).where('endedAt', 'is', null).execute(),
};

/** Closes an alert that is over; the owner hears of it unless it is silent. */
export const resolveAlert: StoreCommand<TroubleEnd, void> = {
  name: 'resolveAlert',
  run: closeAlert,
};

/** The owner has read it. A state stays noted until it ends, so that it is not told anew meanwhile. */
export const dismissNotice: StoreCommand<{ readonly id: string }, 'done' | 'not-found'> = {
  name: 'dismissNotice',
  run: async (tx, { id }) => {
    const row = await tx.db
      .updateTable('ownerNotices')
      .set({ dismissedAt: tx.now, isPending: 0 })
      .where('id', '=', id)
      .returning(['kind', 'subject', 'endedAt'])
      .executeTakeFirst();
    if (row === undefined) return 'not-found';
    if (row.endedAt === null && !isLasting(row.kind)) await closeAlert(tx, row);
    return 'done';
  },
};
