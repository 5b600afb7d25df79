import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { lockRows } from '../base/row-locks.ts';
import { type AnswerOf, amendAnswered, restoreAnswered } from '../rows/item-states.ts';

/**
 * Amends the provisional outcome of the answered items according to the answer's parts: `answered` is only kept while
 * none of them has failed. Called whenever a part has ended; repeating it changes nothing.
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

/** Determines the outcome of the answered items again, after the operator has changed a part that had ended. */
export async function reviseOutcome(tx: Tx, answer: AnswerOf): Promise<void> {
  await lockRun(tx, answer.runId);
  await restoreAnswered(tx, answer);
  await amendOutcome(tx, answer);
}

/** Locks the run, so that of two parts of one answer that end at the same time, the second sees the first one's row. */
async function lockRun(tx: Tx, runId: string): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  await lockRows(tx, tx.db.selectFrom('runs').select('id').where('id', '=', runId));
}
