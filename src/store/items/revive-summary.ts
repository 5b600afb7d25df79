import type { Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import { changeRow } from '../base/row-by-key.ts';
import { reopenSummarized } from '../rows/item-states.ts';
import { lockLane } from '../rows/lane-row.ts';
import { wakeIfIdle } from './item-change.ts';
import { readOpenItems } from './open-items.ts';

/**
 * Makes the newest summarised message wait again when no other message is waiting. Otherwise no run would begin that
 * reads the summary lines until somebody happens to write. Call it after each step that withdraws waiting messages. The
 * caller holds the lane's lock.
 */
export async function reviveSummary(
  tx: Tx,
  laneKey: string,
  effects: Pick<Effects, 'wakes' | 'arrivals'>,
): Promise<void> {
  const lane = await lockLane(tx, laneKey);
  const summaries = json.summaries(lane?.overflow ?? null).toSorted((a, b) => a.seq - b.seq);
  const newest = summaries.pop();
  if (!lane || !newest) return;
  const open = await readOpenItems(tx, laneKey);
  if (open.some(({ kind, state }) => kind === 'message' && state === 'waiting')) return;
  const overflow = summaries.length === 0 ? null : JSON.stringify(summaries);
  await changeRow(tx, 'lanes', laneKey, { overflow });
  await reopenSummarized(tx, newest.inboxId);
  effects.arrivals.push(laneKey);
  wakeIfIdle(tx, lane, effects);
}
