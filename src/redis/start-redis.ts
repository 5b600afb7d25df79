import { createHash } from 'node:crypto';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import {
  openRedis,
  type RedisConnections,
  type RedisKeys,
  type RedisTarget,
  redisKeys,
} from './connection.ts';
import { startPrivateServer } from './private-server.ts';

/** An open Redis, either private to this folder or the configured one. */
export type RunningRedis = {
  readonly connections: RedisConnections;
  readonly keys: RedisKeys;
  stop(): Promise<void>;
};

export type RedisSettings = {
  readonly config: Pick<Config, 'redisUrl' | 'databaseUrl' | 'dataDir'>;
  readonly log: Log;
  readonly clock: Clock;
  /** Permanent name of the data folder. */
  readonly folderId: string;
};

/** Connects to the configured Redis, or starts a private one. Throws `redis_unavailable`. */
export async function startRedis({ config, log, clock, folderId }: RedisSettings): Promise<RunningRedis> {
  const keys = redisKeys(installationOf(config, folderId));
  if (config.redisUrl) {
    const connections = openRedis(targetOf(config.redisUrl), log);
    await untilAnswering(connections);
    return { connections, keys, stop: async () => connections.close() };
  }
  const server = await startPrivateServer({ dataDir: config.dataDir, log, clock });
  const connections = openRedis({ kind: 'socket', path: server.socketPath }, log);
  const stop = async () => {
    connections.close();
    await server.stop();
  };
  return { connections, keys, stop };
}

/** Separates installations that share one Redis. Each database is one installation, whose processes share its lanes. */
function installationOf({ databaseUrl }: RedisSettings['config'], folderId: string): string {
  if (!databaseUrl) return folderId;
  const { host, pathname } = new URL(databaseUrl.reveal());
  return createHash('sha256').update(`${host}${pathname}`).digest('hex').slice(0, 16);
}

/** How long to wait at the start for a Redis that is just starting, ms; later losses are waited out indefinitely. */
const patienceMs = 3_000;

async function untilAnswering(connections: RedisConnections): Promise<void> {
  try {
    await connections.ready(AbortSignal.timeout(patienceMs));
  } catch (cause) {
    connections.close();
    const reason = connections.problem() ?? `no answer within ${patienceMs} ms`;
    throw new ParleyError(
      'redis_unavailable',
      `Redis isn't reachable (${reason}). Start it, correct REDIS_URL, or unset it and Parley runs its own.`,
      { cause, retry: { kind: 'later' } },
    );
  }
}

function targetOf(url: Secret): RedisTarget {
  const address = url.reveal();
  return address.startsWith('/') ? { kind: 'socket', path: address } : { kind: 'address', url };
}
