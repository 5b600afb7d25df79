/**
 * Writes the states of alerts to the owner; no other file does: opened, told, dismissed, ended. If the condition arises
 * in the store, the alert is part of the same transaction; the outbox reports it to the owner afterwards
 * (`delivery/queue-alert-message.ts`).
 */

import { sql } from 'kysely';
import type { OutboundContent } from '#contracts/outbound.ts';
import { type Alert, type AlertKind, isAlertKind, isLasting } from '#contracts/owner-alert.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/keys.ts';
import { changeRow } from '../base/row-access.ts';

/** Once an alert was reported this long ago, ms, another event of its kind and subject opens a new one. */
const tellAgainMs = 86_400_000;

/**
 * Opens an alert, or counts the event on the open one. A condition that returns before its end was reported continues
 * under the same alert. Returns true when an alert was opened.
 */
export async function openAlert(tx: Tx, { values = {}, ...alert }: Alert): Promise<boolean> {
  const details = JSON.stringify(values);
  const isState = isLasting(alert.kind);
  const { kind, subject } = storedName(alert);
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
          // A lasting condition that is reported again is still the same one.
          count: eb('ownerNotices.count', '+', isState ? 0 : 1),
        })),
    )
    .returning('id')
    .executeTakeFirstOrThrow();
  return row.id === id;
}

/** Ends an alert that was reported to the owner long ago; returns how often its event had happened. */
async function endOld(tx: Tx, { kind, subject }: AlertName): Promise<number> {
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

async function reopen(
  tx: Tx,
  { kind, subject, details }: AlertName & { readonly details: string },
): Promise<boolean> {
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

/** An alert that is over. */
export type TroubleEnd = AlertName & {
  /** True if the owner knows already, or doesn't need to. */
  readonly isSilent?: boolean;
};

/** Ends the alert, if it is open. The owner is notified of the end of a lasting condition that was reported. */
export async function closeAlert(tx: Tx, { isSilent = false, ...alert }: TroubleEnd): Promise<void> {
  const isReported = isLasting(alert.kind) && !isSilent;
  const { kind, subject } = storedName(alert);
  await tx.db
    .updateTable('ownerNotices')
    .set((eb) => ({
      endedAt: tx.now,
      isPending: isReported
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

/** Records that the owner was notified of the step. `partKey`: the part that does so, if any; the first one stays. */
export async function markTold(tx: Tx, alert: ToldAlert, partKey: string | undefined): Promise<void> {
  await changeRow(tx, 'ownerNotices', alert.id, {
    isPending: 0,
    toldAt: alert.toldAt ?? tx.now,
    partKey: alert.partKey ?? partKey ?? null,
  });
}

/** Key prefix of the parts that notify an owner. */
export const ownerPartPrefix = 'owner:';

/** Matches pending alerts, with the condition of the partial index word for word. */
export function isPending() {
  return sql<boolean>`"ownerNotices"."isPending" = 1`;
}

/** Opens an alert; returns false when it was open. Safe to repeat: a kind and subject have one open alert. */
export const raiseAlert: StoreCommand<Alert, boolean> = {
  name: 'raiseAlert',
  run: openAlert,
};

/** Says whether an alert has been opened and not ended; dismissed ones count. */
export const isAlertOpen: StoreQuery<AlertName, boolean> = {
  query: 'isAlertOpen',
  run: async (tx, alert) => {
    const { kind, subject } = storedName(alert);
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

/** Reads the alerts that haven't ended, including dismissed ones. */
export const readOpenAlerts: StoreQuery<Record<never, never>, readonly AlertName[]> = {
  query: 'readOpenAlerts',
  run: async (tx) => {
    const open = tx.db.selectFrom('ownerNotices').select(['kind', 'subject']).where('endedAt', 'is', null);
    return (await open.execute()).flatMap((row) => nameOfStored(row) ?? []);
  },
};

/** Closes an alert that is over; the owner is notified unless `isSilent`. */
export const resolveAlert: StoreCommand<TroubleEnd, void> = {
  name: 'resolveAlert',
  run: closeAlert,
};

/** Marks an alert as read by the owner. A lasting condition stays open until it ends, so it isn't reported again. */
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
    const name = nameOfStored(row);
    if (row.endedAt === null && name && !isLasting(name.kind)) await closeAlert(tx, name);
    return 'done';
  },
};

// How alerts are named in the store. 0.2.0 fails at a kind that it doesn't know, and from then on tells its owner
// nothing. After a way back it must find none, so newer kinds are stored under one that it ends by itself at its
// start: a full context of an agent that doesn't exist. This version skips the kinds that a later one may store.

/** Kind and subject of an alert, which identify it. */
export type AlertName = Pick<Alert, 'kind' | 'subject'>;

const standIn = 'context-full';
const newerKinds = [
  'model-window',
  'model-cache',
  'part-failing',
  'hook-suspended',
] as const satisfies readonly AlertKind[];

/** Returns the name under which an alert is stored. */
function storedName({ kind, subject }: AlertName): AlertName {
  const isNewer = newerKinds.some((each) => each === kind);
  return isNewer ? { kind: standIn, subject: `${kind} ${subject}` } : { kind, subject };
}

/** Returns an alert's own name from the stored one; undefined for the kind of a later version. */
export function nameOfStored({ kind, subject }: AlertName): AlertName | undefined {
  if (!isAlertKind(kind)) return undefined;
  const newer = kind === standIn ? newerKinds.find((each) => subject.startsWith(`${each} `)) : undefined;
  return newer === undefined ? { kind, subject } : { kind: newer, subject: subject.slice(newer.length + 1) };
}

type FailedRun = {
  readonly runId: string;
  readonly outcomeReason?: string;
  readonly parts: readonly {
    readonly route: ReplyRoute;
    readonly content: OutboundContent;
    readonly purpose: string;
  }[];
};

/** Alerts the owner to why a run failed if its group only sees a reaction; does nothing for any other end. */
export async function alertFailedRun(tx: Tx, { runId, outcomeReason = '', parts }: FailedRun): Promise<void> {
  const sign = parts.find(({ content, purpose }) => purpose === 'notice' && content.kind === 'reaction');
  if (sign === undefined) return;
  const values = { reason: outcomeReason.replaceAll('_', ' '), run: runId };
  await openAlert(tx, { kind: 'run-failed', subject: conversationKeyOf(sign.route), values });
}
