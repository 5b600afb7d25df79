import type { Tx } from '../base/command.ts';
import { findRow } from '../base/row-by-key.ts';

const suffix = ':waiting';

/** Returns the part key of an item's waiting notice. */
export function waitingNoticeKeyOf(inboxId: string): string {
  return `${inboxId}${suffix}`;
}

/** Says whether the part notifies a sender that their message waits. Such a part never holds up those after it. */
export function isWaitingNotice(partKey: string): boolean {
  return partKey.endsWith(suffix);
}

/** Says whether the part is a waiting notice whose message no longer waits, so that it isn't worth sending. */
export async function isObsolete(tx: Tx, partKey: string): Promise<boolean> {
  if (!isWaitingNotice(partKey)) return false;
  const row = await findRow(tx, 'inbox', partKey.slice(0, -suffix.length), ['state', 'runId']);
  return row === undefined || !(await isStillWaiting(tx, row));
}

/** Says whether the item waits for its run, or its run waits for room in a budget. */
export async function isStillWaiting(
  tx: Tx,
  { state, runId }: { readonly state: string; readonly runId: string | null },
): Promise<boolean> {
  if (state === 'waiting') return true;
  if (state !== 'taken' || runId === null) return false;
  const run = await findRow(tx, 'runs', runId, ['budgetWait']);
  return run !== undefined && run.budgetWait !== null;
}
