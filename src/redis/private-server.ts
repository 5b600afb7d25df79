// Parley's own Redis: a real redis-server on a unix socket that only this user can open, without
// persistence. It is started, watched, restarted when it dies, and ended with Parley.
import { chmodSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { askServer, sendInline } from './inline-client.ts';
import { findLivingOwner, removeOwner, thisOwner, writeOwner } from './server-owner.ts';
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
  /** Stays the same over restarts of the server. */
  readonly socketPath: string;
  /** The server's process id now; undefined between its death and its restart. */
  pid(): number | undefined;
  /** Ends the server; resolves when it is gone. Safe to call twice. */
  stop(): Promise<void>;
}

const startTimeoutMs = 5000;
const firstBackoffMs = 20;
const longestBackoffMs = 5000;
/** Up this long, a server counts as healthy and its next death starts the back-off anew. */
const steadyMs = 30_000;

/**
 * Starts the server and resolves when it answers. Throws ParleyError `redis_unavailable` (missing, too
 * old, does not start) or `data_folder_locked` (another living Parley uses the folder's server).
 */
export async function startPrivateServer(options: PrivateServerOptions): Promise<PrivateServer> {
  const folder = join(options.dataDir, 'redis');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const socketPath = chooseSocketPath(folder);
  const ownerPath = join(folder, 'owner.json');
  refuseNeighbour(ownerPath, options.dataDir);
  await endOrphan(socketPath, options.log);
  writeOwner(ownerPath, thisOwner());
  const start = () => {
    rmSync(socketPath, { force: true });
    const command = options.command ?? 'redis-server';
    return startServerProcess({ command, socketPath, folder, startTimeoutMs });
  };
  const stopping = new AbortController();
  const state: { server: ServerProcess | undefined } = { server: await start() };
  options.log.debug({ pid: state.server?.pid, version: state.server?.version }, 'redis.started');
  const supervision = supervise({ ...options, state, start, signal: stopping.signal });
  return {
    socketPath,
    pid: () => state.server?.pid,
    stop: async () => {
      if (stopping.signal.aborted) return supervision;
      stopping.abort();
      await state.server?.end();
      await supervision;
      rmSync(socketPath, { force: true });
      removeOwner(ownerPath);
    },
  };
}

function refuseNeighbour(ownerPath: string, dataDir: string): void {
  const owner = findLivingOwner(ownerPath);
  if (owner === undefined) return;
  throw new ParleyError(
    'data_folder_locked',
    `Process ${owner.pid} uses ${dataDir} already. Stop it, or set PARLEY_DATA_DIR to another folder.`,
  );
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
  log.warn({ pid }, 'redis.orphan_ended');
  // The answer is the end of the connection; an error means it went before it could tell.
  await sendInline(socketPath, 'SHUTDOWN NOSAVE', 2000).catch(() => undefined);
}

type Supervision = {
  readonly state: { server: ServerProcess | undefined };
  readonly start: () => Promise<ServerProcess>;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly clock: Clock;
};

/** Starts the server again whenever it ends, until the signal aborts. Never rejects. */
async function supervise({ state, start, signal, log, clock }: Supervision): Promise<void> {
  let backoffMs = firstBackoffMs;
  while (!signal.aborted) {
    if (state.server !== undefined) {
      const since = clock.now();
      const reason = await state.server.ended;
      state.server = undefined;
      if (signal.aborted) return;
      log.error({ reason }, 'redis.died');
      if (clock.now() - since > steadyMs) backoffMs = firstBackoffMs;
    }
    await clock.wait(backoffMs, signal);
    backoffMs = Math.min(backoffMs * 2, longestBackoffMs);
    if (signal.aborted) return;
    state.server = await startAgain(start, log);
    if (signal.aborted) await state.server?.end();
  }
}

async function startAgain(start: () => Promise<ServerProcess>, log: Log): Promise<ServerProcess | undefined> {
  try {
    const server = await start();
    log.warn({ pid: server.pid }, 'redis.restarted');
    return server;
  } catch (error) {
    log.error({ error }, 'redis.restart_failed');
    return undefined;
  }
}
