/**
 * If a platform asks to wait before a part is sent, it is called again after five minutes at the latest, whatever time
 * it asked for, and that doesn't count as an attempt. The part stores when the platform first asked and until when. A
 * wait of more than five minutes, whether requested at once or in total, raises an alert that lasts until the part has
 * ended.
 */
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import { timeText } from '#channel-kit/time-text.ts';
import { closeAlert, openAlert, ownerPartPrefix } from '../alerts/note-alert.ts';
import type { Tx } from '../base/command.ts';
import { isOpenPart } from '../base/index-predicates.ts';
import { findRow } from '../base/row-by-key.ts';

export async function noteAskedWait(tx: Tx, partKey: string, askedMs: number): Promise<void> {
  const until = tx.now + askedMs;
  const { since, conversationKey } = await tx.db
    .updateTable('outbox')
    .set((eb) => ({
      waitAskedSince: eb.fn.coalesce('waitAskedSince', eb.val(tx.now)),
      waitAskedUntil: until,
    }))
    .where('key', '=', partKey)
    .returning(['waitAskedSince as since', 'conversationKey'])
    .executeTakeFirstOrThrow();
  const isLong = askedMs > longestWaitMs || tx.now - Number(since) > longestWaitMs;
  // An alert's own delivery raises no alert.
  if (!isLong || partKey.startsWith(ownerPartPrefix)) return;
  const values = { since: timeText(Number(since)), until: timeText(until) };
  await openAlert(tx, { kind: 'delivery-waits', subject: conversationKey, values });
}

/** When a part's platform first asked to wait, ms; null when it hasn't. */
export type AskedWait = { readonly conversationKey: string; readonly waitAskedSince: number | null };

/** A part's wait, with the part's state and attempts. */
export type AskedPart = AskedWait & { readonly state: string; readonly attempts: number };

/** Reads the part's wait; undefined when there is no such part. */
export function readAskedWait(tx: Tx, partKey: string): Promise<AskedPart | undefined> {
  return findRow(tx, 'outbox', partKey, ['conversationKey', 'waitAskedSince', 'state', 'attempts']);
}

/** Ends the wait of a part that has ended or moved; the alert closes once no other part there has to wait. */
export async function endAskedWait(tx: Tx, conversationKey: string, isSilent = false): Promise<void> {
  const other = await tx.db
    .selectFrom('outbox')
    .select('key')
    .where('conversationKey', '=', conversationKey)
    .where(isOpenPart())
    .where('waitAskedSince', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  if (!other) await closeAlert(tx, { kind: 'delivery-waits', subject: conversationKey, isSilent });
}
