import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { changeRow } from '../base/row-by-key.ts';
import { newRowId } from '../base/row-id.ts';
import { stopTree } from '../children/stop-tree.ts';
import { reviveSummary } from '../items/revive-summary.ts';
import { endItems, endSummarized } from '../rows/item-states.ts';
import { beginSession, type Lane } from '../rows/lane-row.ts';
import { forgetContext } from '../rows/remember-context.ts';

/**
 * Starts another session in a lane. The old one's sub-agents are stopped. Their announcements, and the messages that
 * were overheard or summarized before `seq` (the command's own number), end with the old session.
 */
export async function startSession(
  tx: Tx,
  lane: Lane,
  { seq = lane.nextSeq, effects }: { readonly seq?: number | undefined; readonly effects: Effects },
): Promise<void> {
  await stopTree(tx, { sessionId: lane.sessionId, reason: 'reset' }, effects);
  await beginSession(tx, lane, newRowId());
  await forgetContext(tx, { laneKey: lane.key, before: seq });
  await dropSummaries(tx, lane, seq);
  if ((await dropAnnouncements(tx, lane)) > 0) await reviveSummary(tx, lane.key, effects);
}

/**
 * Drops what sub-agents announced to the old session while the command waited, since nobody in the new session asked
 * for it.
 */
async function dropAnnouncements(tx: Tx, lane: Lane): Promise<number> {
  const announced = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .where('source', '=', 'child')
    .where('sourceKey', 'like', 'child:%')
    .execute();
  return endItems(
    tx,
    announced.map(({ id }) => id),
    reset,
  );
}

const reset = { outcome: 'cancelled', outcomeReason: 'reset' } as const;

/** Drops the cap's summaries from before the command along with the old session; later ones stay queued. */
async function dropSummaries(tx: Tx, lane: Lane, before: number): Promise<void> {
  const summaries = json.summaries(lane.overflow);
  const dropped = summaries.filter((summary) => summary.seq < before);
  if (dropped.length === 0) return;
  const kept = summaries.filter((summary) => summary.seq > before);
  const overflow = kept.length === 0 ? null : JSON.stringify(kept);
  await changeRow(tx, 'lanes', lane.key, { overflow });
  const ids = dropped.map((summary) => summary.inboxId);
  await endSummarized(tx, ids, reset);
}
