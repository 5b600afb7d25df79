import type { Tx } from '../base/command.ts';
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
  const row = (await lockTries(tx)) ?? (await makeTries(tx));
  // A clock that was set back leaves times in the future: they count until it has caught up.
  const recent = (JSON.parse(row?.recent ?? '[]') as readonly number[]).filter(
    (at) => at > tx.now - windowMs,
  );
  if (recent.length >= attemptsPerMinute) return 'limited';
  await tx.db
    .updateTable('pairingTries')
    .set({ recent: JSON.stringify([...recent, tx.now]) })
    .where('name', '=', name)
    .execute();
  return 'taken';
}

async function lockTries(tx: Tx): Promise<{ readonly recent: string } | undefined> {
  const [row] = await lockRows(
    tx,
    tx.db.selectFrom('pairingTries').select('recent').where('name', '=', name),
  );
  return row;
}

/** The first attempt of all; another process may have made the row meanwhile. */
async function makeTries(tx: Tx): Promise<{ readonly recent: string } | undefined> {
  await tx.db
    .insertInto('pairingTries')
    .values({ name, recent: '[]' })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return lockTries(tx);
}
