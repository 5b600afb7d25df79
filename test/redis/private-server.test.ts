import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '#channel-kit/system-clock.ts';
import type { Log } from '#contracts/log.ts';
import { Secret } from '../../src/config/secret.ts';
import { tryLockFile } from '../../src/processes/file-lock.ts';
import { openRedis, type RedisConnections } from '../../src/redis/connection.ts';
import { chooseSocketPath, type PrivateServer, startPrivateServer } from '../../src/redis/private-server.ts';
import { askServer, sendInline } from '../../src/redis/server-process.ts';
import { patienceMs } from '../support/patience.ts';

type Entry = { readonly level: string; readonly event: string; readonly fields: object };

let folder: string;
let entries: Entry[];
let log: Log;
const cleanups: (() => unknown)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-redis-'));
  entries = [];
  log = recordingLog(entries);
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

function recordingLog(into: Entry[]): Log {
  const at = (level: string) => (fields: object, event: string) => void into.push({ level, event, fields });
  const self: Log = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => self,
  };
  return self;
}

const events = () => entries.map((entry) => entry.event);

async function start(dataDir = folder): Promise<PrivateServer> {
  const server = await startPrivateServer({ dataDir, log, clock: systemClock });
  cleanups.push(() => server.stop());
  return server;
}

function open(path: string): RedisConnections {
  const redis = openRedis({ kind: 'socket', path }, log);
  cleanups.push(() => redis.close());
  return redis;
}

/** Returns false for a zombie too: it has ended, but its parent hasn't collected it yet. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

const patiently = { timeout: patienceMs, interval: 5 };

describe('the private Redis server', () => {
  it('answers on a Unix socket that only its user can open, and on no port', async () => {
    const server = await start();
    expect(await sendInline(server.socketPath, 'PING', patienceMs)).toBe('+PONG\r\n');
    expect(await sendInline(server.socketPath, 'CONFIG GET port', patienceMs)).toContain('\r\n0\r\n');
    expect(statSync(server.socketPath).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'redis')).mode & 0o777).toBe(0o700);
  });

  it('writes nothing to disk and evicts nothing', async () => {
    const server = await start();
    await sendInline(server.socketPath, 'SET key value', patienceMs);
    expect(await sendInline(server.socketPath, 'CONFIG GET maxmemory-policy', patienceMs)).toContain(
      'noeviction',
    );
    expect(await sendInline(server.socketPath, 'CONFIG GET appendonly', patienceMs)).toContain('no');
    await server.stop();
    expect(readdirSync(join(folder, 'redis'))).toEqual(['owner.lock']);
  });

  it('restarts a killed server on the same socket, and clients reconnect', async () => {
    const server = await start();
    const redis = open(server.socketPath);
    await redis.ready(AbortSignal.timeout(patienceMs));
    const first = server.pid() ?? 0;
    process.kill(first, 'SIGKILL');
    await vi.waitFor(() => expect(redis.isReady()).toBe(false), patiently);
    await vi.waitFor(() => expect(redis.isReady()).toBe(true), patiently);
    expect(await redis.producer.ping()).toBe('PONG');
    expect(server.pid()).not.toBe(first);
    expect(events()).toEqual(expect.arrayContaining(['redis.died', 'redis.restarted']));
  });

  it('restarts the server any number of times', async () => {
    const server = await start();
    for (let round = 0; round < 4; round++) {
      const pid = server.pid() ?? 0;
      process.kill(pid, 'SIGKILL');
      await vi.waitFor(() => {
        expect(server.pid()).toBeTypeOf('number');
        expect(server.pid()).not.toBe(pid);
      }, patiently);
    }
    expect((await askServer(server.socketPath, patienceMs)).pid).toBe(server.pid());
  });

  it('restarts the server in a new folder after the folder was deleted, and clients reconnect', async () => {
    const server = await start();
    const redis = openRedis({ kind: 'socket', path: server.socketPath }, log);
    cleanups.push(() => redis.close());
    await redis.ready(AbortSignal.timeout(patienceMs));
    rmSync(join(folder, 'redis'), { recursive: true, force: true, maxRetries: 5 });
    await vi.waitFor(() => expect(existsSync(server.socketPath)).toBe(true), patiently);
    await vi.waitFor(async () => expect(await redis.producer.ping()).toBe('PONG'), patiently);
    await askServer(server.socketPath, patienceMs);
    expect(statSync(join(folder, 'redis')).mode & 0o777).toBe(0o700);
    await server.stop();
    await expect(askServer(server.socketPath, 500)).rejects.toThrow();
  });

  it('ends the server on stop, even if stop is called twice or just after a crash', async () => {
    const server = await start();
    const pid = server.pid() ?? 0;
    process.kill(pid, 'SIGKILL');
    await Promise.all([server.stop(), server.stop()]);
    expect(existsSync(server.socketPath)).toBe(false);
    const next = await start();
    const nextPid = next.pid() ?? 0;
    await next.stop();
    expect(isAlive(nextPid)).toBe(false);
  });

  it('ends the orphaned server of a killed Parley and starts its own', async () => {
    mkdirSync(join(folder, 'redis'));
    const socketPath = join(folder, 'redis', 'redis.sock');
    const orphan = spawn('redis-server', ['--port', '0', '--unixsocket', socketPath, '--save', ''], {
      stdio: 'ignore',
    });
    cleanups.push(() => orphan.kill('SIGKILL'));
    const orphanEnd = once(orphan, 'exit');
    await vi.waitFor(() => askServer(socketPath, 500), patiently);
    const server = await start();
    await orphanEnd;
    expect(server.pid()).not.toBe(orphan.pid);
    expect(events()).toContain('redis.orphan-ended');
    expect(await sendInline(server.socketPath, 'PING', patienceMs)).toBe('+PONG\r\n');
  });

  it('replaces the socket file that a power cut left', async () => {
    mkdirSync(join(folder, 'redis'));
    writeFileSync(join(folder, 'redis', 'redis.sock'), '');
    const server = await start();
    expect(await sendInline(server.socketPath, 'PING', patienceMs)).toBe('+PONG\r\n');
  });

  it('works in a folder with spaces and quotes in its name', async () => {
    const dataDir = join(folder, 'my "own" data');
    mkdirSync(dataDir);
    const server = await start(dataDir);
    expect(server.socketPath.startsWith(dataDir)).toBe(true);
  });

  it('says how to install a missing server', async () => {
    const starting = startPrivateServer({
      dataDir: folder,
      log,
      clock: systemClock,
      command: 'no-such-redis',
    });
    await expect(starting).rejects.toMatchObject({
      code: 'redis_unavailable',
      message: expect.stringMatching(/no-such-redis is not installed.*install.*redis.*REDIS_URL/s),
    });
  });

  it("says why a server doesn't start", async () => {
    const starting = startPrivateServer({ dataDir: folder, log, clock: systemClock, command: 'false' });
    await expect(starting).rejects.toMatchObject({
      code: 'redis_unavailable',
      message: expect.stringContaining('ended with code 1'),
    });
  });
});

describe('another process on the same folder', () => {
  async function spawnOther(): Promise<{ child: ChildProcess; redisPid: number }> {
    const program = join(import.meta.dirname, 'server-owner.ts');
    const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    cleanups.push(() => child.kill('SIGKILL'));
    const [line] = await once(child.stdout ?? child, 'data');
    return { child, redisPid: Number(String(line)) };
  }

  it('shares the server of another process and leaves it running when it stops', async () => {
    const { child, redisPid } = await spawnOther();
    const server = await start();
    expect(server.pid()).toBeUndefined();
    expect((await askServer(server.socketPath, patienceMs)).pid).toBe(redisPid);
    await server.stop();
    expect((await askServer(server.socketPath, patienceMs)).pid).toBe(redisPid);
    expect(child.exitCode).toBeNull();
  });

  it('waits for another process no longer than a server takes to start, and retries later', async () => {
    mkdirSync(join(folder, 'redis'));
    const place = tryLockFile(join(folder, 'redis/owner.lock'));
    cleanups.push(() => place?.release());
    let now = 0;
    const wait = async (ms: number) => {
      now += ms;
    };
    const clock = { now: () => now, wait };
    await expect(startPrivateServer({ dataDir: folder, log, clock })).rejects.toMatchObject({
      ...{ code: 'redis_unavailable', retry: { kind: 'later' } },
      message: expect.stringContaining('Another process'),
    });
  });

  it("takes over a killed process's server at the same path and for the same clients", async () => {
    const { child, redisPid } = await spawnOther();
    const server = await start();
    const redis = open(server.socketPath);
    await redis.ready(AbortSignal.timeout(patienceMs));
    child.kill('SIGKILL');
    await vi.waitFor(() => expect(server.pid()).toBeTypeOf('number'), patiently);
    await vi.waitFor(() => expect(redis.isReady()).toBe(true), patiently);
    expect(await redis.producer.ping()).toBe('PONG');
    expect(isAlive(redisPid)).toBe(false);
    expect(server.pid()).not.toBe(redisPid);
  });

  it('ends the server of a killed process, whose folder can be used at once', async () => {
    const { child, redisPid } = await spawnOther();
    const end = once(child, 'exit');
    child.kill('SIGKILL');
    await end;
    const server = await start();
    expect(server.pid()).not.toBe(redisPid);
    await vi.waitFor(() => expect(isAlive(redisPid)).toBe(false), patiently);
  });
});

describe('the path of the socket', () => {
  it('puts the socket into the data folder if its path fits into 107 bytes', () => {
    expect(chooseSocketPath(folder)).toBe(join(folder, 'redis.sock'));
  });

  it('puts the socket into a private temporary folder if its path is too long', async () => {
    const dataDir = join(folder, 'ö'.repeat(60));
    mkdirSync(dataDir);
    const path = chooseSocketPath(dataDir, folder);
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(107);
    expect(path).toBe(chooseSocketPath(dataDir, folder));
    expect(path).not.toBe(chooseSocketPath(`${dataDir}2`, folder));
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
    const server = await start(dataDir);
    cleanups.push(() =>
      rmSync(join(server.socketPath, '..'), { recursive: true, force: true, maxRetries: 5 }),
    );
    expect(await sendInline(server.socketPath, 'PING', patienceMs)).toBe('+PONG\r\n');
  });

  it('refuses a socket folder where someone else has planted a file', () => {
    const dataDir = join(folder, 'x'.repeat(120));
    const path = chooseSocketPath(dataDir, folder);
    rmSync(join(path, '..'), { recursive: true, force: true, maxRetries: 5 });
    writeFileSync(join(path, '..'), 'planted');
    expect(() => chooseSocketPath(dataDir, folder)).toThrow();
  });
});

describe('connections to Redis', () => {
  it('fails a wake at once while Redis is away instead of buffering it', async () => {
    const redis = open(join(folder, 'nobody.sock'));
    await expect(redis.producer.set('a', 'b')).rejects.toThrow();
    await vi.waitFor(() => expect(events()).toContain('redis.disconnected'), patiently);
    await expect(redis.ready(AbortSignal.timeout(50))).rejects.toThrow();
  });

  it('logs once that Redis is away and once that it is back', async () => {
    const path = join(folder, 'redis', 'redis.sock');
    const redis = open(path);
    await vi.waitFor(() => expect(redis.producer.status).toBe('reconnecting'), patiently);
    await start();
    await redis.ready(AbortSignal.timeout(patienceMs));
    expect(events().filter((event) => event === 'redis.disconnected')).toHaveLength(2);
    expect(events().filter((event) => event === 'redis.reconnected')).toHaveLength(2);
  });

  it('uses an address with its password, and keeps it out of the log', async () => {
    const redis = openRedis(
      { kind: 'address', url: new Secret('redis://:canary-password@127.0.0.1:1') },
      log,
    );
    cleanups.push(() => redis.close());
    await vi.waitFor(() => expect(events()).toContain('redis.disconnected'), patiently);
    expect(redis.producer.options.password).toBe('canary-password');
    expect(JSON.stringify(entries, ['level', 'event', 'fields', 'error', 'message', 'stack'])).not.toContain(
      'canary',
    );
  });
});
