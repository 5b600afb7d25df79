import type { Tx } from '../base/command.ts';
import { findRow } from '../base/row-by-key.ts';

const suffix = ':waiting';

/** The part key of an item's waiting notice. */
export function waitingNoticeKeyOf(inboxId: string): string {
  return `${inboxId}${suffix}`;
}

/** Whether the part tells somebody that their message waits. It never holds up what follows it. */
export function isWaitingNotice(partKey: string): boolean {
  return partKey.endsWith(suffix);
}

/** A notice is worth sending for as long as its message waits. */
export async function isObsolete(tx: Tx, partKey: string): Promise<boolean> {
  if (!isWaitingNotice(partKey)) return false;
  const row = await findRow(tx, 'inbox', partKey.slice(0, -suffix.length), ['state']);
  return row?.state !== 'waiting';
}
