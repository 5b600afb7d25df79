import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { childEnvironment } from '../config/environment.ts';
import type { Secret } from '../config/secret.ts';

export type RedisReport =
  | { readonly kind: 'found'; readonly version: string; readonly policy: string }
  | { readonly kind: 'unreachable'; readonly reason: string };

const timeoutMs = 5_000;

/** Asks a configured Redis for its version and eviction policy. Never throws because of what it finds. */
export async function inspectRedis(url: Secret): Promise<RedisReport> {
  const address = url.reveal();
  const options = {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  };
  const redis = address.startsWith('/')
    ? new Redis({ ...options, path: address })
    : new Redis(address, options);
  let problem: string | undefined;
  redis.on('error', (error: Error) => {
    problem = error.message === '' && 'code' in error ? String(error.code) : error.message;
  });
  try {
    await redis.connect();
    const info = await redis.info();
    const read = (name: string) => new RegExp(`^${name}:(.+?)\\r?$`, 'm').exec(info)?.[1];
    return {
      kind: 'found',
      version: read('redis_version') ?? 'unknown',
      policy: read('maxmemory_policy') ?? 'unknown',
    };
  } catch (error) {
    return {
      kind: 'unreachable',
      reason: problem ?? (error instanceof Error ? error.message : String(error)),
    };
  } finally {
    redis.disconnect();
  }
}

/** Returns the version of the `redis-server` on the path; undefined if there is none. */
export async function findRedisServer(): Promise<string | undefined> {
  try {
    const env = childEnvironment();
    const { stdout } = await promisify(execFile)('redis-server', ['--version'], { timeout: timeoutMs, env });
    return /\bv=(\S+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}
