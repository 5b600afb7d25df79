import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { newRowId } from '../base/row-id.ts';
import { stopTree } from '../children/stop-tree.ts';
import { endSummarized } from '../rows/item-states.ts';
import { beginSession, type Lane } from '../rows/lane-row.ts';

/**
 * Starts another session in a lane. The old one's sub-agents are stopped, and what was overheard or summarized before `seq`, the command's own
 * number, ends with the old session.
 */
export async function startSession(
  tx: Tx,
  lane: Lane,
  { seq = lane.nextSeq, effects }: { readonly seq?: number | undefined; readonly effects: Effects },
): Promise<void> {
  await stopTree(tx, { sessionId: lane.sessionId, reason: 'reset' }, effects);
  await beginSession(tx, lane, newRowId());
  await tx.db
    .deleteFrom('groupContext')
    .where('laneKey', '=', lane.key)
    .where('shownInRun', 'is', null)
    .where('seq', '<', seq)
    .execute();
  await dropSummaries(tx, lane, seq);
}

/** Drops the cap's summaries from before the command with the old session; later ones stay queued. */
async function dropSummaries(tx: Tx, lane: Lane, before: number): Promise<void> {
  const summaries = json.summaries(lane.overflow);
  const dropped = summaries.filter((summary) => summary.seq < before);
  if (dropped.length === 0) return;
  const kept = summaries.filter((summary) => summary.seq > before);
  const overflow = kept.length === 0 ? null : JSON.stringify(kept);
  await tx.db.updateTable('lanes').set({ overflow }).where('key', '=', lane.key).execute();
  const ids = dropped.map((summary) => summary.inboxId);
  await endSummarized(tx, ids, { outcome: 'cancelled', outcomeReason: 'reset' });
}
