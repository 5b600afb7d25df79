import type { Tx } from '../command.ts';
import { prepared, type Slots } from '../prepared.ts';

const deliveryFailed = 'delivery failed';
const deliveryUnknown = 'delivery unknown';

/**
 * The provisional outcome of a run's messages is amended by what became of its replies: `answered`
 * holds only while none of them failed. Called whenever either side changes; repeating it changes
 * nothing.
 */
export async function amendOutcome(tx: Tx, runId: string): Promise<void> {
  await lockRun(tx, runId);
  const ends = await troubledReplies.all(tx, { runId });
  if (ends.length === 0) return;
  const change = ends.some(({ state }) => state === 'failed')
    ? { outcome: 'failed', outcomeReason: deliveryFailed }
    : { outcomeReason: deliveryUnknown };
  await tx.db
    .updateTable('inbox')
    .set(change)
    .where('runId', '=', runId)
    .where('outcome', '=', 'answered')
    .execute();
}

const troubledReplies = prepared((db, of: Slots<{ runId: string }>) =>
  db
    .selectFrom('outbox')
    .select('state')
    .where('runId', '=', of.runId)
    .where('purpose', '=', 'reply')
    .where('state', 'in', ['failed', 'unknown']),
);

/** The operator has changed a part that had ended: its run's messages are judged anew. */
export async function reviseOutcome(tx: Tx, runId: string): Promise<void> {
  await lockRun(tx, runId);
  await tx.db
    .updateTable('inbox')
    .set({ outcome: 'answered', outcomeReason: null })
    .where('runId', '=', runId)
    .where('outcomeReason', 'in', [deliveryFailed, deliveryUnknown])
    .execute();
  await amendOutcome(tx, runId);
}

/** The end of the run and the end of a part may meet: whoever comes second sees the other's rows. */
async function lockRun(tx: Tx, runId: string): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  await tx.db.selectFrom('runs').select('id').where('id', '=', runId).forUpdate().execute();
}
