import { ParleyError } from '#contracts/errors.ts';
import type { Tx } from '../base/command.ts';
import { ensureRow } from '../base/insert-row.ts';
import { lockRows } from '../base/row-locks.ts';

/** Codes checked within any 60 s, across all people and processes. */
export const attemptsPerMinute = 10;
const windowMs = 60_000;
/** All approvals share one row. */
const name = 'approve';

/**
 * Takes one attempt, or says that there is none left; then not even a right code is looked at. The times
 * of the last attempts are a row, so a restart resets nothing, and its lock lets one attempt in at a time.
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

/** Locks the row of all approvals, and says whether an attempt is left. */
export async function hasAttempt(tx: Tx): Promise<boolean> {
  return recentOf(tx, await lockAttempts(tx)).length < attemptsPerMinute;
}

function recentOf(tx: Tx, { recent }: { readonly recent: string }): readonly number[] {
  // A clock that was set back leaves times in the future: they count until it has caught up.
  return (JSON.parse(recent) as readonly number[]).filter((at) => at > tx.now - windowMs);
}

/**
 * Locks the row of all approvals: they come one after the other, whatever accounts they are for. It comes before those.
 */
export async function lockAttempts(tx: Tx): Promise<{ readonly recent: string }> {
  const tries = tx.db.selectFrom('pairingTries').select('recent').where('name', '=', name);
  const [known] = await lockRows(tx, tries);
  if (known) return known;
  // The first of all; another process may make the row meanwhile.
  await ensureRow(tx, 'pairingTries', { name, recent: '[]' });
  const [made] = await lockRows(tx, tries);
  if (!made) throw new ParleyError('internal', 'The row of all approvals could not be made.');
  return made;
}
