import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import fs, { mkdir } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { openStore } from '../support/open-store.ts';
import { aFolder } from '../support/own-folder.ts';

/** Creates a data folder as a gateway leaves it: database, token and a picture, all in the state called `name`. */
export async function aDataFolder(name = 'first'): Promise<string> {
  const dataDir = aFolder();
  await (await openStore({ kind: 'sqlite', dataDir })).close();
  await mkdir(join(dataDir, 'media/2026'), { recursive: true });
  setState(dataDir, name);
  return dataDir;
}

/** Puts database and files into one state. */
export function setState(dataDir: string, name: string): void {
  runSql(dataDir, `insert or replace into lockouts (source, until) values ('${name}', 1)`);
  runSql(dataDir, `delete from lockouts where source <> '${name}'`);
  writeFileSync(join(dataDir, 'token'), name, { mode: 0o600 });
  writeFileSync(join(dataDir, 'media/2026/picture'), name);
}

/** Returns the state of each part of the folder. */
export function stateOf(dataDir: string): readonly string[] {
  const read = (path: string) => readFileSync(join(dataDir, path), 'utf8');
  const [row] = readSql(dataDir, 'select source from lockouts') as readonly { source: string }[];
  return [row?.source ?? 'none', read('token'), read('media/2026/picture')];
}

export function runSql(dataDir: string, sql: string): void {
  const db = new BetterSqlite3(join(dataDir, 'parley.db'), { timeout: 10_000 });
  db.exec(sql);
  db.close();
}

export function readSql(dataDir: string, sql: string, file = 'parley.db'): readonly unknown[] {
  const db = new BetterSqlite3(join(dataDir, file), { timeout: 10_000 });
  const rows = db.prepare(sql).all();
  db.close();
  return rows;
}

/** Acts once on each of the paths, right after its kind has been read. */
export function onceSeen(paths: readonly string[], act: (path: string) => Promise<unknown>): void {
  const { lstat } = fs;
  const become = (reader: unknown) => {
    Reflect.set(fs, 'lstat', reader);
    syncBuiltinESMExports();
  };
  const left = new Set(paths);
  become(async (path: string) => {
    const found = await lstat(path);
    if (left.delete(path)) await act(path);
    return found;
  });
  onTestFinished(() => become(lstat));
}

/** Returns pairs of which a copy of the database has only one half. */
export function tornPairs(dataDir: string): readonly unknown[] {
  return readSql(
    dataDir,
    `select replace(replace(name, '-left', ''), '-right', '') as pair, count(*) as halves
     from "pairingTries" group by pair having halves <> 2`,
  );
}

/** Writes pairs into the database from another process until the test ends. */
export async function underLoad(dataDir: string): Promise<ChildProcess> {
  const child = fork('pair-writer.ts', [dataDir]);
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  });
  await once(child, 'message');
  return child;
}

/**
 * Performs the action in its own process, which is killed once `killWhen` has resolved. Returns the number of its
 * operations, or undefined if it was killed.
 */
export async function actAndDie(
  args: readonly string[],
  killWhen?: () => Promise<void>,
): Promise<number | undefined> {
  const child = fork('act-and-die.ts', args);
  let operations: number | undefined;
  child.on('message', (message) => {
    operations = (message as { operations: number }).operations;
  });
  // A message may still be in transit after its sender has ended.
  const gone = Promise.all([once(child, 'exit'), once(child, 'disconnect')]);
  if (killWhen !== undefined) await killWhen().finally(() => child.kill('SIGKILL'));
  const [[code, signal]] = await gone;
  if (signal !== 'SIGKILL' && code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
  return operations;
}

function fork(script: string, args: readonly string[]) {
  return spawn(process.execPath, [join(import.meta.dirname, script), ...args], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
  });
}
