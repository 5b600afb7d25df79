// Parley's own Redis: a real redis-server without persistence, on a unix socket that only this user can open. One of
// the processes that share a data folder owns it, which means it starts, watches and stops it. The others wait for the
// lock, and its next holder starts a server at the same path.

import { createHash } from 'node:crypto';
import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { type FileLock, tryLockFile } from '../processes/file-lock.ts';
import { askServer, type ServerProcess, sendInline, startServerProcess } from './server-process.ts';

export interface PrivateServer {
  /** Stays the same across restarts of the server and changes of its owner. */
  readonly socketPath: string;
  /**
   * Returns the server's current process id; undefined between its death and restart, and if another process owns it.
   */
  pid(): number | undefined;
  /** Ends the server if this process owns it; resolves when it is gone. Safe to call twice. */
  stop(): Promise<void>;
}

const startTimeoutMs = 5000;
/** How long another process may take to start or restart it, ms. */
const ownersTimeMs = 2 * startTimeoutMs;
const firstBackoffMs = 20;
const longestBackoffMs = 5000;
/** A server that was up this long, ms, counts as healthy, and its next death resets the back-off. */
const steadyMs = 30_000;

/** How often a process that doesn't own the server checks whether ownership is free. */
const successionMs = 300;

/**
 * Resolves when the folder's server responds, whether this process or another one on the folder has started it. Throws
 * ParleyError `redis_unavailable` if it is missing, too old, doesn't start, or is owned by another process and doesn't
 * respond.
 */
export async function startPrivateServer(options: {
  readonly dataDir: string;
  readonly log: Log;
  readonly clock: Clock;
  /** A program to use instead of the `redis-server` on the path. */
  readonly command?: string;
}): Promise<PrivateServer> {
  const { log, clock } = options;
  const folder = join(options.dataDir, 'redis');
  makeFolder(folder);
  const socketPath = chooseSocketPath(folder);
  const start = async () => {
    await endOrphan(socketPath, log);
    rmSync(socketPath, { force: true });
    const command = options.command ?? 'redis-server';
    return startServerProcess({ command, socketPath, folder, startTimeoutMs });
  };
  const stopping = new AbortController();
  const place = join(folder, 'owner.lock');
  const state = await firstServer({ place, socketPath, start, clock });
  if (state.server) log.debug({ pid: state.server.pid, version: state.server.version }, 'redis.started');
  const paths = { folder, place, socketPath };
  const supervision = supervise({ state, paths, start, signal: stopping.signal, log, clock });
  return {
    socketPath,
    pid: () => state.server?.pid,
    stop: async () => {
      if (stopping.signal.aborted) return supervision;
      stopping.abort();
      await state.server?.end();
      await supervision;
      if (state.ownership) rmSync(socketPath, { force: true });
      state.ownership?.release();
    },
  };
}

function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
}

type State = { ownership: FileLock | undefined; server: ServerProcess | undefined };

type ServerStart = {
  /** The holder of this lock owns the server. */
  readonly place: string;
  readonly socketPath: string;
  readonly start: () => Promise<ServerProcess>;
  readonly clock: Clock;
};

/** Starts a server, or waits until the one of another owner responds. */
async function firstServer({ place, socketPath, start, clock }: ServerStart): Promise<State> {
  for (const until = clock.now() + ownersTimeMs; clock.now() < until; ) {
    const ownership = tryLockFile(place);
    if (ownership) {
      try {
        return { ownership, server: await start() };
      } catch (error) {
        ownership.release();
        throw error;
      }
    }
    if (await isAnswering(socketPath)) return { ownership: undefined, server: undefined };
    // Its owner is just starting it, or failing to, in which case ownership will be free in a moment.
    await clock.wait(firstBackoffMs);
  }
  throw new ParleyError(
    'redis_unavailable',
    `Another process owns this folder's Redis, and it doesn't respond at ${socketPath}. See that process's log.`,
    { retry: { kind: 'later' } },
  );
}

async function isAnswering(socketPath: string): Promise<boolean> {
  try {
    await askServer(socketPath, 500);
    return true;
  } catch {
    return false;
  }
}

/**
 * A server whose Parley was killed may still be listening. It is ended rather than taken over: nothing in it is needed,
 * and only a child process can be watched.
 */
async function endOrphan(socketPath: string, log: Log): Promise<void> {
  if (!existsSync(socketPath)) return;
  let pid: number;
  try {
    ({ pid } = await askServer(socketPath, 1000));
  } catch {
    // No response: a dead socket file, replaced at the start.
    return;
  }
  log.warn({ pid }, 'redis.orphan-ended');
  // The response is the end of the connection; an error means that the server was gone before it could respond.
  await sendInline(socketPath, 'SHUTDOWN NOSAVE', 2000).catch(() => undefined);
}

type Paths = { readonly folder: string; readonly place: string; readonly socketPath: string };

type Supervision = {
  readonly state: State;
  readonly paths: Paths;
  readonly start: () => Promise<ServerProcess>;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly clock: Clock;
};

/** Takes ownership when it is free, and restarts the server whenever it ends. Never rejects. */
async function supervise({ state, paths, start, signal, log, clock }: Supervision): Promise<void> {
  let backoffMs = firstBackoffMs;
  while (!signal.aborted) {
    if (!state.ownership) {
      await clock.wait(successionMs, signal);
      if (!signal.aborted) state.ownership = takePlace(paths.place);
      if (!state.ownership) continue;
      log.warn({}, 'redis.owner-lost');
    }
    if (state.server !== undefined) {
      const since = clock.now();
      const reason = await endOf(state.server, { paths, signal, clock });
      state.server = undefined;
      if (signal.aborted) return;
      log.error({ reason }, 'redis.died');
      if (clock.now() - since > steadyMs) backoffMs = firstBackoffMs;
    }
    await clock.wait(backoffMs, signal);
    backoffMs = Math.min(backoffMs * 2, longestBackoffMs);
    if (signal.aborted) return;
    state.ownership = ownershipOf(state.ownership, paths);
    if (!state.ownership) continue;
    state.server = await startAgain(start, log);
    if (signal.aborted) await state.server?.end();
  }
}

/** How often to check whether the folder was deleted under the server, ms. Until then existing connections work. */
const watchMs = 3_000;

/**
 * Resolves with the reason when the server has ended. A server whose socket was deleted only serves existing
 * connections, so it is ended: there is nothing in it to save.
 */
async function endOf(
  server: ServerProcess,
  { paths, signal, clock }: Omit<Supervision, 'state' | 'start' | 'log'>,
): Promise<string> {
  let reason: string | undefined;
  const ended = server.ended.then((why) => {
    reason = why;
  });
  while (reason === undefined && !signal.aborted) {
    await Promise.race([ended, clock.wait(watchMs, signal)]);
    if (reason !== undefined || signal.aborted || isWhole(paths)) continue;
    await server.end();
    return 'its folder was deleted';
  }
  return reason ?? 'stopped';
}

function isWhole({ place, socketPath }: Paths): boolean {
  return existsSync(place) && existsSync(socketPath);
}

/** A lock on a deleted file excludes nobody: the folder is created again, and its first process owns it. */
function ownershipOf(ownership: FileLock, { folder, place }: Paths): FileLock | undefined {
  if (existsSync(place)) return ownership;
  try {
    makeFolder(folder);
  } catch {
    // The data folder itself is gone or full: starting the server reports that, and is retried.
    return ownership;
  }
  ownership.release();
  return takePlace(place);
}

function takePlace(place: string): FileLock | undefined {
  try {
    return tryLockFile(place);
  } catch {
    // Its folder was deleted; the owner creates it again.
    return undefined;
  }
}

async function startAgain(start: () => Promise<ServerProcess>, log: Log): Promise<ServerProcess | undefined> {
  try {
    const server = await start();
    log.warn({ pid: server.pid }, 'redis.restarted');
    return server;
  } catch (error) {
    log.error({ error }, 'redis.restart-failed');
    return undefined;
  }
}

/** `sun_path` of unix(7) minus its final NUL: 108 bytes on Linux, 104 on macOS and the BSDs. */
const longestPath = process.platform === 'linux' ? 107 : 103;

/**
 * Chooses where the private server listens: in the data folder or, if that path is too long for a socket, in the user's
 * own folder under the system's temporary one, named after the data folder. Throws ParleyError `redis_unavailable` if
 * that folder belongs to someone else.
 */
export function chooseSocketPath(dataDir: string, temporary: string = tmpdir()): string {
  const inDataDir = join(dataDir, 'redis.sock');
  if (Buffer.byteLength(inDataDir) <= longestPath) return inDataDir;
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const folder = join(temporary, `parley-${name}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory() || (process.getuid !== undefined && stat.uid !== process.getuid())) {
    throw new ParleyError(
      'redis_unavailable',
      `${folder} belongs to another user, so Redis can't listen there. Remove it, or use a data folder with a shorter path.`,
    );
  }
  chmodSync(folder, 0o700);
  return join(folder, 'redis.sock');
}
