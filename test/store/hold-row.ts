import { expect, onTestFinished } from 'vitest';
import type { LaneSpec } from '../../src/store/base/keys.ts';
import { unique } from './builders.ts';
import type { Beside } from './each-database.ts';

/** Returns whether a transaction has locked the row. PostgreSQL only. */
export function isRowHeld(beside: Beside, table: string, key: string): Promise<boolean> {
  return beside.sql(`${lockOf(table, key)} nowait`).then(
    () => false,
    () => true,
  );
}

/** Locks the row until the returned function is called or the test ends. PostgreSQL only. */
export function holdRow(beside: Beside, table: string, key: string): Promise<() => Promise<void>> {
  return hold(beside, lockOf(table, key), () => isRowHeld(beside, table, key));
}

/** Tables whose key column isn't called `key`. */
const keys: Readonly<Record<string, string>> = { pairingTries: 'name', linkGuesses: 'peer' };

function lockOf(table: string, key: string): string {
  return `select 1 from "${table}" where ${keys[table] ?? 'key'} = '${key}' for update`;
}

/** Creates the lane in a step that stays uncommitted until then. PostgreSQL only. */
export function holdNewLane(beside: Beside, lane: LaneSpec): Promise<() => Promise<void>> {
  return hold(beside, insertOf(lane), () => isLaneMade(beside, lane));
}

/** Returns whether an open transaction has created the lane. PostgreSQL only. */
export function isLaneMade(beside: Beside, lane: LaneSpec): Promise<boolean> {
  const attempt = `begin; set local lock_timeout = '50ms'; ${insertOf(lane)}; rollback`;
  return beside.sql(attempt).then(
    () => false,
    () => true,
  );
}

/** Returns whether a transaction waits for what another has locked or created. PostgreSQL only. */
export function isAnyoneWaiting(beside: Beside): Promise<boolean> {
  const waiting = `select 1 / count(*) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  return beside.sql(waiting).then(
    () => true,
    () => false,
  );
}

function insertOf({ key, chatKind, newSessionId, settings }: LaneSpec): string {
  const { mode, debounceMs, quietMs, cap, drop } = settings;
  return `insert into lanes (key, class, "agentId", "chatKind", "sessionId", epoch, "leaseUntil", "nextSeq",
      mode, "debounceMs", "quietMs", cap, drop, "lastActivityAt")
    values ('${key}', 'main', 'main', '${chatKind}', '${newSessionId}', 0, 0, 1,
      '${mode}', ${debounceMs}, ${quietMs}, ${cap}, '${drop}', 1)`;
}

async function hold(
  beside: Beside,
  statement: string,
  isHeld: () => Promise<boolean>,
): Promise<() => Promise<void>> {
  const mark = unique('holding');
  const holding = beside.sql(`${statement}; select pg_sleep(300) /* ${mark} */`).catch(() => undefined);
  await expect.poll(isHeld).toBe(true);
  const release = async () => {
    await beside.sql(`select pg_terminate_backend(pid) from pg_stat_activity
      where query like '%/* ${mark} */' and pid <> pg_backend_pid()`);
    await holding;
  };
  onTestFinished(release);
  return release;
}
