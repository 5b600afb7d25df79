import type { Tx } from '../base/command.ts';
import { json } from '../base/json.ts';
import { changeRow } from '../base/row-by-key.ts';
import { endSummarized, type ItemEnd } from './item-states.ts';
import type { Lane } from './lane-row.ts';

type Sender = { readonly account: string; readonly senderId: string; readonly conversationKey: string };

export type SummariesEnd = {
  readonly isTheirs: (row: Sender) => boolean;
  readonly end: ItemEnd;
};

/**
 * Removes the summary lines of these senders from the lane and ends their messages as given, because a line that no run
 * has read waits like any other message. Returns how many there were. The caller holds the lane's lock.
 */
export async function endSummaries(
  tx: Tx,
  lane: Pick<Lane, 'key' | 'overflow'>,
  { isTheirs, end }: SummariesEnd,
): Promise<number> {
  const summaries = json.summaries(lane.overflow);
  if (summaries.length === 0) return 0;
  const rows = await tx.db
    .selectFrom('inbox')
    .select(['id', 'account', 'senderId', 'conversationKey'])
    .where(
      'id',
      'in',
      summaries.map(({ inboxId }) => inboxId),
    )
    .execute();
  const gone = rows.filter(isTheirs);
  if (gone.length === 0) return 0;
  const ids = new Set(gone.map(({ id }) => id));
  const kept = summaries.filter(({ inboxId }) => !ids.has(inboxId));
  const overflow = kept.length === 0 ? null : JSON.stringify(kept);
  await changeRow(tx, 'lanes', lane.key, { overflow });
  await endSummarized(tx, [...ids], end);
  return gone.length;
}
