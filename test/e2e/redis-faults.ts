import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { askServer, sendInline } from '../../src/redis/server-process.ts';
import { until } from './until.ts';

/** The socket of the private Redis of a data folder. */
export function privateSocket(dataDir: string): string {
  return join(dataDir, 'redis', 'redis.sock');
}

/** Waits until a server answers there, and returns its process id. */
export async function untilServing(socketPath: string): Promise<number> {
  let found = 0;
  const ask = async () => {
    found = (await askServer(socketPath, 500).catch(() => undefined))?.pid ?? 0;
    return found > 0;
  };
  await until(ask, { what: `a Redis at ${socketPath}` });
  return found;
}

export async function flushAll(socketPath: string): Promise<void> {
  await sendInline(socketPath, 'FLUSHALL', 5000);
}

/** A Redis owned by the test, which no Parley looks after. */
export type OwnRedis = {
  readonly socketPath: string;
  start(): Promise<void>;
  kill(): Promise<void>;
};

export async function startOwnRedis(atEnd: (end: () => Promise<void>) => void): Promise<OwnRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-redis-'));
  const socketPath = join(folder, 'own.sock');
  let server: ChildProcess | undefined;
  const kill = async () => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  const start = async () => {
    const settings = ['--port', '0', '--unixsocket', socketPath, '--save', '', '--dir', folder];
    server = spawn('redis-server', settings, { stdio: 'ignore' });
    await untilServing(socketPath);
  };
  atEnd(async () => {
    await kill();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  await start();
  return { socketPath, start, kill };
}
