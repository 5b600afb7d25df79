/**
 * Each process that uses the data folder has its files in `processes/`: a lock that the operating system holds while it
 * is alive, the journal of its sends, and its address. A free lock belongs to a dead process, whose journal is then
 * read and whose files are removed.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { tryLockFile } from './file-lock.ts';

/** The files of the processes that use one data folder. */
export interface ProcessFiles {
  /** `<process id>-<random>`: unique among all processes that ever used the folder. */
  readonly name: string;
  journalOf(name: string): string;
  /** The file for this process's address. */
  readonly addressPath: string;
  /** Returns false once that process has ended, however it ended. */
  isAlive(name: string): boolean;
  /** Returns all other processes that have files here. */
  others(): readonly string[];
  /** Returns those of them that have definitely ended. */
  ended(): readonly string[];
  /** Removes the files of processes that have ended. */
  remove(names: readonly string[]): void;
  release(): void;
}

/** Creates this process's files in the folder. */
export function enterProcesses(dataDir: string): ProcessFiles {
  const folder = join(dataDir, 'processes');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const name = `${process.pid}-${crypto.randomUUID()}`;
  // A process that checks which others are alive may have the lock for a moment.
  const lock = tryLockFile(join(folder, `${name}.lock`), 1_000);
  if (!lock) throw new ParleyError('internal', `Another process holds the new lock of process ${name}.`);
  const others = () => namesIn(folder).filter((one) => one !== name);
  const remove = (names: readonly string[]) => {
    for (const one of names)
      for (const kind of ['sends', 'address', 'lock'])
        rmSync(join(folder, `${one}.${kind}`), { force: true });
  };
  return {
    name,
    journalOf: (one) => join(folder, `${one}.sends`),
    addressPath: join(folder, `${name}.address`),
    isAlive: (one) => one === name || isHeld(folder, one),
    others,
    ended: () => others().filter((one) => !isBeginning(folder, one) && !isHeld(folder, one)),
    remove,
    release: () => lock.release(),
  };
}

/** Returns the processes that use the folder now. */
export function liveProcesses(dataDir: string): readonly { readonly name: string; readonly pid: number }[] {
  const folder = join(dataDir, 'processes');
  return namesIn(folder)
    .filter((name) => isSeenHeld(folder, name))
    .map((name) => ({ name, pid: Number.parseInt(name, 10) }));
}

/** In a read-only folder no lock can be tried; a process that can't be seen to be alive doesn't count as alive. */
function isSeenHeld(folder: string, name: string): boolean {
  try {
    return isHeld(folder, name);
  } catch {
    return false;
  }
}

function isHeld(folder: string, name: string): boolean {
  const path = join(folder, `${name}.lock`);
  if (!existsSync(path)) return false;
  const lock = tryLockFile(path);
  lock?.release();
  return lock === undefined;
}

/** A process creates its file a moment before locking it. */
const beginningMs = 60_000;

function isBeginning(folder: string, name: string): boolean {
  const made = statSync(join(folder, `${name}.lock`), { throwIfNoEntry: false });
  return made !== undefined && Date.now() - made.mtimeMs < beginningMs;
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).flatMap((file) => (file.endsWith('.lock') ? [file.slice(0, -5)] : []));
  } catch {
    // No process has ever been here.
    return [];
  }
}
