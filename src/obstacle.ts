/**
 * What a start can wait out: the disk is full or read-only, a file can't be opened, the database or Redis
 * is away. All of it may be over without anybody touching Parley. A wrong setting, a damaged file or a
 * second process is none of it, and ends the start at once.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import type { Config } from './config/config.ts';
import { inspectStore } from './store/inspect-store.ts';

export type Obstacle = {
  /** As `/readyz` names it. */
  readonly id: 'store' | 'redis' | 'data folder';
  /** What is wrong, one sentence. */
  readonly reason: string;
};

const waits: ReadonlyMap<string, string> = new Map([
  ['ENOSPC', 'is on a disk that is full'],
  ['EDQUOT', 'is on a disk whose quota is used up'],
  ['SQLITE_FULL', 'is on a disk that is full'],
  ['EROFS', 'is on a file system that is read-only'],
  ['SQLITE_READONLY', 'is on a file system that is read-only'],
  ['EIO', 'is on a disk that fails'],
  ['SQLITE_IOERR', 'is on a disk that fails'],
  ['EACCES', "may not be written by Parley's user"],
  ['EPERM', "may not be written by Parley's user"],
  ['SQLITE_CANTOPEN', 'has a file that cannot be opened'],
  ['EMFILE', 'cannot be used: too many files are open'],
  ['ENFILE', 'cannot be used: too many files are open'],
]);

/** Undefined when waiting would not help. */
export function obstacleIn(error: unknown, dataDir: string): Obstacle | undefined {
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

/** What is written to see whether there is room again, bytes. */
const probeBytes = 256 * 1024;

/** A cheap look whether a new start has a chance; undefined when nothing stands in its way. */
export async function findObstacle(
  config: Pick<Config, 'dataDir' | 'databaseUrl'>,
): Promise<Obstacle | undefined> {
  const { dataDir, databaseUrl } = config;
  const probe = join(dataDir, `.room-${process.pid}`);
  try {
    await writeFile(probe, Buffer.alloc(probeBytes), { mode: 0o600 });
  } catch (error) {
    return obstacleIn(error, dataDir);
  } finally {
    await rm(probe, { force: true }).catch(() => undefined);
  }
  if (databaseUrl === undefined) return undefined;
  const report = await inspectStore({ kind: 'postgres', url: databaseUrl.reveal() });
  if (report.kind !== 'unreachable') return undefined;
  return { id: 'store', reason: `PostgreSQL is not reachable (${report.reason}).` };
}
