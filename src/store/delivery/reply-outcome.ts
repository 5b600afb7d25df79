import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { lockRows } from '../base/row-locks.ts';
import { type AnswerOf, amendAnswered, restoreAnswered } from '../rows/item-states.ts';

/**
 * The provisional outcome of what was answered is amended by what became of the answer's parts:
 * `answered` holds only while none of them failed. Called whenever a part has ended; repeating it changes
 * nothing.
 */
export async function amendOutcome(tx: Tx, answer: AnswerOf): Promise<void> {
  await lockRun(tx, answer.runId);
  const ends = await troubledReplies.all(tx, answer);
  if (ends.length === 0) return;
  await amendAnswered(tx, answer, { hasFailed: ends.some(({ state }) => state === 'failed') });
}

const troubledReplies = prepared((db, of: QueryParams<AnswerOf>) =>
  db
    .selectFrom('outbox')
    .select('state')
    .where('runId', '=', of.runId)
    .where('answer', '=', of.answer)
    .where('purpose', '=', 'reply')
    .where('state', 'in', ['failed', 'unknown']),
);

/** The operator has changed a part that had ended: what it answers is judged anew. */
export async function reviseOutcome(tx: Tx, answer: AnswerOf): Promise<void> {
  await lockRun(tx, answer.runId);
  await restoreAnswered(tx, answer);
  await amendOutcome(tx, answer);
}

/** Two parts of one answer may end at once: the second sees the other's row. */
async function lockRun(tx: Tx, runId: string): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  await lockRows(tx, tx.db.selectFrom('runs').select('id').where('id', '=', runId));
}
