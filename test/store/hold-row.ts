import { expect, onTestFinished } from 'vitest';
import { unique } from './builders.ts';
import type { Beside } from './each-database.ts';

/** Whether a transaction has the row locked. PostgreSQL only. */
export function isRowHeld(beside: Beside, table: string, key: string): Promise<boolean> {
  return beside.sql(`select 1 from ${table} where key = '${key}' for update nowait`).then(
    () => false,
    () => true,
  );
}

/** Has the row locked until the function it returns is called, or the test ends. PostgreSQL only. */
export async function holdRow(beside: Beside, table: string, key: string): Promise<() => Promise<void>> {
  const mark = unique('holding');
  const hold = `select 1 from ${table} where key = '${key}' for update; select pg_sleep(300) /* ${mark} */`;
  const holding = beside.sql(hold).catch(() => undefined);
  await expect.poll(() => isRowHeld(beside, table, key)).toBe(true);
  const release = async () => {
    await beside.sql(`select pg_terminate_backend(pid) from pg_stat_activity
      where query like '%/* ${mark} */' and pid <> pg_backend_pid()`);
    await holding;
  };
  onTestFinished(release);
  return release;
}
