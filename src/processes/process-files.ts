/**
 * Each process that uses the data folder has its files in `processes/`: a lock that the operating system
 * holds for as long as it lives, the journal of its sends, and its address. A lock that is free belongs to a dead
 * process, whose journal is then read and whose files are removed.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { tryLockFile } from './file-lock.ts';

/** The files of the processes that use one data folder. */
export interface ProcessFiles {
  /** `<process id>-<random>`: this process among all that ever used the folder. */
  readonly name: string;
  journalOf(name: string): string;
  /** Where this process writes at which address it answers. */
  readonly addressPath: string;
  /** False once that process has ended, however that was. */
  isAlive(name: string): boolean;
  /** All others whose files lie here. */
  others(): readonly string[];
  /** Those of them that have surely ended. */
  ended(): readonly string[];
  /** Removes the files of processes that have ended. */
  remove(names: readonly string[]): void;
  release(): void;
}

/** Takes this process's place in the folder. */
export function enterProcesses(dataDir: string): ProcessFiles {
  const folder = join(dataDir, 'processes');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const name = `${process.pid}-${crypto.randomUUID()}`;
  // Somebody who looks who is alive may have it for a moment.
  const lock = tryLockFile(join(folder, `${name}.lock`), 1_000);
  if (!lock) throw new ParleyError('internal', `Somebody else holds the new lock of process ${name}.`);
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

/** The processes that use the folder now. */
export function liveProcesses(dataDir: string): readonly { readonly name: string; readonly pid: number }[] {
  const folder = join(dataDir, 'processes');
  return namesIn(folder)
    .filter((name) => isSeenHeld(folder, name))
    .map((name) => ({ name, pid: Number.parseInt(name, 10) }));
}

/** In a folder that can't be written nobody can try a lock; a process that isn't seen to live doesn't count as living. */
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

/** A process makes its file a moment before it locks it. */
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
