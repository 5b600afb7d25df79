import { Redis, type RedisOptions } from 'ioredis';
import type { Log } from '#contracts/log.ts';
import type { Secret } from '../config/secret.ts';

/** Where Redis is: the private server's socket, or an address the owner configured. */
export type RedisTarget =
  | { readonly kind: 'socket'; readonly path: string }
  | { readonly kind: 'address'; readonly url: Secret };

/** The Redis connections of a process. After any loss, they keep reconnecting on their own. */
export interface RedisConnections {
  /**
   * For adding jobs and publishing. Without a connection a command fails immediately instead of waiting in memory: the
   * sweep finds the lane of a lost wake.
   */
  readonly producer: Redis;
  /** For BullMQ workers, which block on it and wait out any connection loss. */
  readonly blocking: Redis;
  /** True while the producer can be used. */
  isReady(): boolean;
  /** Resolves when both are connected; rejects if the signal aborts first. */
  ready(signal: AbortSignal): Promise<void>;
  /** Returns the latest connection problem; undefined if there never was one. */
  problem(): string | undefined;
  /**
   * Listens to a topic on its own connection until the returned function is called. Messages published while there is
   * no connection are lost.
   */
  subscribe(topic: string, onMessage: (message: string) => void): () => void;
  /** Closes both immediately, dropping commands in flight. */
  close(): void;
}

export function openRedis(target: RedisTarget, log: Log): RedisConnections {
  const producer = connect(target, {
    enableOfflineQueue: false,
    // A command in flight fails when the connection breaks; the sweep makes up for it.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
  });
  const blocking = connect(target, { maxRetriesPerRequest: null });
  let problem: string | undefined;
  producer.on('error', (error: Error) => {
    problem = 'code' in error ? String(error.code) : error.message;
  });
  collapseErrors(producer, log.child({ connection: 'producer' }));
  collapseErrors(blocking, log.child({ connection: 'blocking' }));
  return {
    producer,
    blocking,
    isReady: () => producer.status === 'ready',
    ready: async (signal) => {
      await Promise.all([producer, blocking].map((redis) => untilReady(redis, signal)));
    },
    problem: () => problem,
    subscribe: (topic, onMessage) => {
      const redis = connect(target, { maxRetriesPerRequest: null });
      // Already logged for the other connections.
      redis.on('error', () => undefined);
      redis.on('message', (_topic, message: string) => onMessage(message));
      redis.subscribe(topic).catch((error: unknown) => log.debug({ error, topic }, 'redis.not-subscribed'));
      return () => redis.disconnect();
    },
    close: () => {
      producer.disconnect();
      blocking.disconnect();
    },
  };
}

function connect(
  target: RedisTarget,
  options: Pick<
    RedisOptions,
    'enableOfflineQueue' | 'maxRetriesPerRequest' | 'autoResendUnfulfilledCommands'
  >,
): Redis {
  const all = {
    ...options,
    connectTimeout: 5000,
    // Fast at first, for a private server that restarts within tens of milliseconds; never so slow that wakes would
    // arrive over two seconds after Redis is back from a long absence.
    retryStrategy: (attempt: number) => Math.min(10 * 2 ** Math.min(attempt, 6), 500),
    enableReadyCheck: true,
  };
  return target.kind === 'socket'
    ? new Redis({ ...all, path: target.path })
    : new Redis(target.url.reveal(), all);
}

/** Logs one line when the connection is lost and one when it is back, however many attempts are in between. */
function collapseErrors(redis: Redis, log: Log): void {
  let failures = 0;
  redis.on('error', (error: Error) => {
    if (failures === 0) log.warn({ error }, 'redis.disconnected');
    failures += 1;
  });
  redis.on('ready', () => {
    if (failures > 0) log.info({ failures }, 'redis.reconnected');
    failures = 0;
  });
}

function untilReady(redis: Redis, signal: AbortSignal): Promise<void> {
  if (redis.status === 'ready') return Promise.resolve();
  return new Promise((resolve, reject) => {
    const onReady = () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    };
    const onAbort = () => {
      redis.off('ready', onReady);
      reject(signal.reason);
    };
    if (signal.aborted) return onAbort();
    redis.once('ready', onReady);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Every name that Parley uses in Redis. Nothing there is authoritative: all of it can be rebuilt from the store and may
 * vanish at any time.
 */
export type RedisKeys = {
  /**
   * BullMQ's key prefix. The braces are a hash tag: on a cluster they put all keys of an installation into one slot, as
   * BullMQ's scripts require.
   */
  readonly prefix: string;
  /** Publish/subscribe topic for hints between processes; everything else is read from the store. */
  readonly eventsTopic: string;
};

/** Returns the names. `installation`, a stable id of the database, separates installations that share a Redis. */
export function redisKeys(installation?: string): RedisKeys {
  const prefix = installation === undefined ? '{parley}' : `{parley-${installation}}`;
  return { prefix, eventsTopic: `${prefix}:events` };
}
