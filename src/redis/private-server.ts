// Parley's own Redis: a real redis-server on a unix socket that only this user can open, without persistence.
// One of the processes that share a data folder owns it: it starts, watches and stops it. The others wait for
// the lock, and the next holder starts a server at the same path.
import { chmodSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { type FileLock, tryLockFile } from '../processes/file-lock.ts';
import { askServer, sendInline } from './inline-client.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { chooseSocketPath } from './socket-path.ts';

export type PrivateServerOptions = {
  readonly dataDir: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Another program than the `redis-server` on the path. */
  readonly command?: string;
};

export interface PrivateServer {
  /** Stays the same over restarts of the server and changes of its owner. */
  readonly socketPath: string;
  /** The server's process id now; undefined between its death and its restart, and when it is another's. */
  pid(): number | undefined;
  /** Ends the server if it is ours; resolves when it is gone. Safe to call twice. */
  stop(): Promise<void>;
}

const startTimeoutMs = 5000;
/** So long another process may take to start it, or to start it again, ms. */
const ownersTimeMs = 2 * startTimeoutMs;
const firstBackoffMs = 20;
const longestBackoffMs = 5000;
/** Up this long, a server counts as healthy and its next death starts the back-off anew. */
const steadyMs = 30_000;

/** How often one that does not own the server looks whether its place is free. */
const successionMs = 300;

/**
 * Resolves when the folder's server answers, started by this process or by another one on the folder.
 * Throws ParleyError `redis_unavailable` (missing, too old, does not start, or is another's and doesn't answer).
 */
export async function startPrivateServer(options: PrivateServerOptions): Promise<PrivateServer> {
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

/** Our own server, or that of the process which owns it, as soon as it answers. */
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
    // Its owner is only just starting it, or failing to: then its place is free in a moment.
    await clock.wait(firstBackoffMs);
  }
  throw new ParleyError(
    'redis_unavailable',
    `Another process has this folder's Redis, and it doesn't answer at ${socketPath}. See that process's log.`,
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
 * A server whose Parley was killed may still listen. It is ended, not taken over: nothing in it is
 * needed, and a child of our own can be watched.
 */
async function endOrphan(socketPath: string, log: Log): Promise<void> {
  if (!existsSync(socketPath)) return;
  let pid: number;
  try {
    ({ pid } = await askServer(socketPath, 1000));
  } catch {
    // Nobody answers: a dead socket file, replaced at start.
    return;
  }
  log.warn({ pid }, 'redis.orphan-ended');
  // The answer is the end of the connection; an error means it went before it could tell.
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

/** Takes the owner's place when it is free, and starts the server again whenever it ends. Never rejects. */
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

/** How soon it is seen that the folder was deleted under the server, ms. */
const watchMs = 500;

/**
 * Why the server has ended. One whose socket was deleted serves only those that are connected, so it is
 * ended: there is nothing in it to save.
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

/** A lock on a deleted file keeps nobody away: the folder is made anew, and its first process owns it. */
function ownershipOf(ownership: FileLock, { folder, place }: Paths): FileLock | undefined {
  if (existsSync(place)) return ownership;
  try {
    makeFolder(folder);
  } catch {
    // The data folder itself is gone or full: the start says so, and is tried again.
    return ownership;
  }
  ownership.release();
  return takePlace(place);
}

function takePlace(place: string): FileLock | undefined {
  try {
    return tryLockFile(place);
  } catch {
    // Its folder was deleted: the owner makes it anew.
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
