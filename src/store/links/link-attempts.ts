import type { Tx } from '../base/command.ts';
import { ensureRow } from '../base/insert-row.ts';
import type { QueryParams } from '../base/prepared.ts';
import { locking } from '../base/row-locks.ts';

/*
 * A counter starts over once its window has passed without an attempt, so that no window of that length, wherever it
 * begins, contains more attempts than this.
 */

/** Wrong codes per account; the window is the lifetime of a code. */
const perPeer = { count: 5, windowMs: 600_000 };
/** Codes looked up in total, across all people. */
const forAll = { count: 10, windowMs: 60_000 };
const everybody = '*';

/**
 * Locks all attempts (and with them every change of links) until the transaction ends, and says whether this account
 * may try a code now. The counters are rows, so neither a restart nor a second process resets them.
 */
export async function hasAttemptLeft(tx: Tx, peer: string): Promise<boolean> {
  const together = await readCount(tx, everybody, forAll.windowMs);
  if (together >= forAll.count) return false;
  return (await readCount(tx, peer, perPeer.windowMs)) < perPeer.count;
}

/** Counts a code that was looked up; only a wrong one counts against the account. */
export async function countGuess(
  tx: Tx,
  { peer, isWrong }: { peer: string; isWrong: boolean },
): Promise<void> {
  await add(tx, everybody, forAll.windowMs);
  if (isWrong) await add(tx, peer, perPeer.windowMs);
}

/** Locks the row that every change of links locks first. */
export async function lockLinks(tx: Tx): Promise<void> {
  await readCount(tx, everybody, forAll.windowMs);
}

async function readCount(tx: Tx, peer: string, windowMs: number): Promise<number> {
  let row = await lockedGuesses.first(tx, { peer });
  if (!row) {
    await ensureRow(tx, 'linkGuesses', { peer, since: 0, count: 0 });
    row = await lockedGuesses.one(tx, { peer });
  }
  return row.since + windowMs > tx.now ? row.count : 0;
}

const lockedGuesses = locking((db, of: QueryParams<{ peer: string }>) =>
  db.selectFrom('linkGuesses').select(['since', 'count']).where('peer', '=', of.peer),
);

async function add(tx: Tx, peer: string, windowMs: number): Promise<void> {
  const count = await readCount(tx, peer, windowMs);
  await tx.db
    .updateTable('linkGuesses')
    .set({ since: tx.now, count: count + 1 })
    .where('peer', '=', peer)
    .execute();
  const forgotten = tx.now - Math.max(perPeer.windowMs, forAll.windowMs);
  await tx.db
    .deleteFrom('linkGuesses')
    .where('since', '<=', forgotten)
    .where('peer', '<>', everybody)
    .execute();
}
