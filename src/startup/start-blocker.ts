/**
 * Faults that a start waits out: a full or read-only disk, a file that can't be opened, an unreachable database or
 * Redis. Each of them may resolve without anyone touching Parley. A wrong setting, a damaged file or a second process
 * ends the start immediately instead.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from '../config/config.ts';
import { inspectStore } from '../store/open-configured.ts';

/** The reason why the gateway can't start yet. */
export type StartBlocker = {
  /** As `/readyz` names it. */
  readonly id: 'store' | 'redis' | 'data folder';
  /** The problem, in one sentence. */
  readonly reason: string;
};

const waits: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'is on a disk that is full'],
  ['EDQUOT', 'is on a disk whose quota is used up'],
  ['SQLITE_FULL', 'is on a disk that is full'],
  ['EROFS', 'is on a file system that is read-only'],
  ['SQLITE_READONLY', 'is on a file system that is read-only'],
  ['EIO', 'is on a failing disk'],
  ['SQLITE_IOERR', 'is on a failing disk'],
  ['EACCES', "may not be written by Parley's user"],
  ['EPERM', "may not be written by Parley's user"],
  ['SQLITE_CANTOPEN', "has a file that can't be opened"],
  ['EMFILE', "can't be used: too many files are open"],
  ['ENFILE', "can't be used: too many files are open"],
]);

/** Recognizes a failed start that may succeed later; undefined when waiting wouldn't help. */
export function blockerFrom(error: unknown, dataDir: string): StartBlocker | undefined {
  if (error instanceof ParleyError && error.retry.kind === 'later') {
    const { code, message } = error;
    if (code === 'store_unavailable' || code === 'store_full') return { id: 'store', reason: message };
    if (code === 'redis_unavailable') return { id: 'redis', reason: message };
  }
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const code = 'code' in at ? String(at.code) : '';
    // SQLite's extended codes begin with the plain one.
    const words = waits.get(code) ?? waits.get(/^SQLITE_[A-Z]+/.exec(code)?.[0] ?? '');
    if (words !== undefined) return { id: 'data folder', reason: `The data folder ${dataDir} ${words}.` };
  }
  return undefined;
}

/** Size of the probe file that shows whether there is space again, bytes. */
const probeBytes = 256 * 1024;

/** Checks cheaply whether another start could succeed; undefined when nothing blocks it. Never throws. */
export async function findBlocker(
  config: Pick<Config, 'dataDir' | 'databaseUrl'>,
): Promise<StartBlocker | undefined> {
  const { dataDir, databaseUrl } = config;
  const probe = join(dataDir, `.room-${process.pid}`);
  try {
    await writeFile(probe, Buffer.alloc(probeBytes), { mode: 0o600 });
  } catch (error) {
    return blockerFrom(error, dataDir);
  } finally {
    await rm(probe, { force: true }).catch(() => undefined);
  }
  if (databaseUrl === undefined) return undefined;
  const report = await inspectStore({ kind: 'postgres', url: databaseUrl.reveal() });
  if (report.kind !== 'unreachable') return undefined;
  return { id: 'store', reason: `PostgreSQL is not reachable (${report.reason}).` };
}
