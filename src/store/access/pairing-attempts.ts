import { ParleyError } from '#contracts/errors.ts';
import type { Tx } from '../base/command.ts';
import { ensureRow } from '../base/insert-row.ts';
import { lockRows } from '../base/row-locks.ts';

/** How many codes are checked within any 60 s, across all people and processes. */
export const attemptsPerMinute = 10;
const windowMs = 60_000;
/** All approvals share one row. */
const name = 'approve';

/**
 * Takes one attempt, or reports that none is left; then even a correct code isn't checked. The times of the last
 * attempts are stored in a row, so a restart doesn't reset them, and its lock admits one attempt at a time.
 */
export async function takeAttempt(tx: Tx): Promise<'taken' | 'limited'> {
  const recent = recentOf(tx, await lockAttempts(tx));
  if (recent.length >= attemptsPerMinute) return 'limited';
  await tx.db
    .updateTable('pairingTries')
    .set({ recent: JSON.stringify([...recent, tx.now]) })
    .where('name', '=', name)
    .execute();
  return 'taken';
}

/** Locks the row shared by all approvals, and says whether an attempt is left. */
export async function hasAttempt(tx: Tx): Promise<boolean> {
  return recentOf(tx, await lockAttempts(tx)).length < attemptsPerMinute;
}

function recentOf(tx: Tx, { recent }: { readonly recent: string }): readonly number[] {
  // A clock that was set back leaves times in the future, which count until it has caught up.
  return (JSON.parse(recent) as readonly number[]).filter((at) => at > tx.now - windowMs);
}

/**
 * Locks the row shared by all approvals, so that they run one at a time, whatever accounts they are for. It must be
 * locked before the accounts.
 */
export async function lockAttempts(tx: Tx): Promise<{ readonly recent: string }> {
  const tries = tx.db.selectFrom('pairingTries').select('recent').where('name', '=', name);
  const [known] = await lockRows(tx, tries);
  if (known) return known;
  // The very first attempt; another process may create the row meanwhile.
  await ensureRow(tx, 'pairingTries', { name, recent: '[]' });
  const [made] = await lockRows(tx, tries);
  if (!made) throw new ParleyError('internal', 'The row shared by all approvals could not be created.');
  return made;
}
