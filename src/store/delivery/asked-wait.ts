/**
 * A platform that asks to wait before a part is sent is asked again after five minutes at the latest, whatever
 * it named, and that does not count as an attempt. Since when it asks and until when is kept with the part. A wait
 * that is longer than those five minutes, as named or as it has turned out, raises an alert until the part has
 * ended.
 */
import { longestWaitMs } from '#channel-kit/remote-number.ts';
import { minuteText } from '../../logging/time-text.ts';
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
  const values = { since: minuteText(Number(since)), until: minuteText(until) };
  await openAlert(tx, { kind: 'delivery-waits', subject: conversationKey, values });
}

/** Since when a part's platform asks to wait, ms; null when it doesn't. */
export type AskedWait = { readonly conversationKey: string; readonly waitAskedSince: number | null };

/** The same, and how far the part is. */
export type AskedPart = AskedWait & { readonly state: string; readonly attempts: number };

/** Reads the part's wait; undefined when there is no such part. */
export function readAskedWait(tx: Tx, partKey: string): Promise<AskedPart | undefined> {
  return findRow(tx, 'outbox', partKey, ['conversationKey', 'waitAskedSince', 'state', 'attempts']);
}

/** The part has ended, or goes elsewhere: the owner is told once nothing else there has to wait. */
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
