import { type ChildProcess, fork, spawn } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { benchBundleFolder } from '../../bin/bundle.mjs';
import { nodeEnvironment, nodeFlags } from '../../bin/node-settings.mjs';
import { withDeadline } from '../clock.ts';
import { cpuMs, residentMb } from '../process-figures.ts';
import { aHome } from '../subject.ts';
import { besideSqlite, createPostgres, type Database } from './database.ts';
import type { Order, ProcessFigures, Report } from './orders.ts';

/** Shared by all processes of one measurement. */
export type Ground = {
  readonly kind: Database['kind'];
  /** The data folder of all processes on SQLite, of the first one on PostgreSQL. */
  readonly home: string;
  readonly database: Database;
  readonly redis: { readonly pid: number; readonly socket: string };
  close(): Promise<void>;
};

/** A process under measurement. */
export interface Parley {
  readonly pid: number;
  readonly startedAt: number;
  tell(order: Order): void;
  /** Resolves with the first report of this kind, even if it has already come. Rejects when the process fails. */
  next<Kind extends Report['kind']>(kind: Kind, withinMs?: number): Promise<Extract<Report, { kind: Kind }>>;
  onReport(listener: (report: Report) => void): void;
  figures(collectsGarbage?: boolean): Promise<ProcessFigures>;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** Prepares a measurement. `postgres`: the address of a cluster. The first process that starts creates the tables. */
export async function prepareGround(kind: Database['kind'], postgres: string | undefined): Promise<Ground> {
  const home = await aHome();
  await mkdir(join(home, 'data'), { recursive: true });
  const redis = await startRedis(home);
  if (kind === 'PostgreSQL' && postgres === undefined) throw new Error('no PostgreSQL to measure on');
  const database =
    kind === 'SQLite' ? besideSqlite(join(home, 'data')) : await createPostgres(postgres ?? '');
  const close = async () => {
    await database.drop();
    redis.process.kill('SIGKILL');
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  };
  return { kind, home, database, redis, close };
}

async function startRedis(home: string) {
  const socket = join(home, 'redis.sock');
  const process = spawn(
    'redis-server',
    ['--port', '0', '--unixsocket', socket, '--save', '', '--dir', home],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await withDeadline<void>(10_000, 'Redis was not ready', (resolve) => {
    process.stdout.on('data', (chunk: Buffer) => {
      if (chunk.includes('eady to accept connections')) resolve();
    });
  });
  return { process, pid: process.pid ?? 0, socket };
}

const root = join(import.meta.dirname, '../..');

/** Everybody may write, as often as the measurement needs; every message is its own turn. */
const settings = {
  port: 0,
  logLevel: 'warn',
  access: { dmPolicy: 'open' },
  rateLimit: { perSenderPerMinute: 100_000 },
  queue: { dm: { mode: 'followup', cap: 1000 } },
};

export type StartOptions = {
  readonly ground: Ground;
  /** Distinguishes the data folders when several processes each have their own. */
  readonly number?: number;
  readonly role?: 'all' | 'gateway' | 'worker';
};

/** Resolves when the process has been started; `next('ready')` when it runs. */
export async function startProcess({ ground, number = 0, role = 'all' }: StartOptions): Promise<Parley> {
  const { home, database, redis } = ground;
  const dataDir = join(home, number === 0 || ground.kind === 'SQLite' ? 'data' : `data-${number}`);
  const configFile = join(home, `parley-${number}.config.json`);
  await writeFile(configFile, JSON.stringify({ ...settings, dataDir, role }));
  const logFile = join(home, `parley-${number}.log`);
  const startedAt = performance.timeOrigin + performance.now();
  const child = fork(join(benchBundleFolder(root), 'lane-process.mjs'), [logFile], {
    execArgv: [...nodeFlags],
    env: {
      ...nodeEnvironment(root),
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PARLEY_CONFIG: configFile,
      TELEGRAM_BOT_TOKEN: `1:${'x'.repeat(35)}`,
      REDIS_URL: redis.socket,
      ...(database.url !== undefined && { DATABASE_URL: database.url }),
    },
  });
  return follow(child, { startedAt, logFile });
}

function follow(child: ChildProcess, about: { startedAt: number; logFile: string }): Parley {
  const reports: Report[] = [];
  const listeners = new Set<(report: Report) => void>();
  const gone = Promise.withResolvers<void>();
  child.on('message', (report: Report) => {
    if (report.kind !== 'sent') reports.push(report);
    for (const listener of [...listeners]) listener(report);
  });
  child.once('exit', () => gone.resolve());
  const tell = (order: Order) => void child.send(order);
  const take = (kind: Report['kind']): Report | undefined => {
    const at = reports.findIndex((report) => report.kind === kind || report.kind === 'failed');
    return at < 0 ? undefined : reports.splice(at, 1)[0];
  };
  const next: Parley['next'] = async (kind, withinMs = 30_000) => {
    const report = withDeadline<Report>(
      withinMs,
      `no report "${kind}" from process ${child.pid}`,
      (resolve) => {
        const look = () => {
          const found = take(kind);
          if (!found) return;
          listeners.delete(look);
          resolve(found);
        };
        listeners.add(look);
        look();
      },
    );
    const ended = gone.promise.then(() => ({ kind: 'failed', problem: 'the process has ended' }) as const);
    const found = await Promise.race([report, ended]);
    if (found.kind === 'failed') throw new Error(`${found.problem}\n${await endOf(about.logFile)}`);
    // `take` returns this kind or a failure.
    return found as never;
  };
  return {
    pid: child.pid ?? 0,
    startedAt: about.startedAt,
    tell,
    next,
    onReport: (listener) => void listeners.add(listener),
    figures: async (collectsGarbage = false) => {
      tell({ kind: 'figures', collectsGarbage });
      return (await next('figures')).figures;
    },
    kill: async () => {
      child.kill('SIGKILL');
      await gone.promise;
    },
    stop: async () => {
      if (child.connected) tell({ kind: 'stop' });
      await gone.promise;
    },
  };
}

async function endOf(file: string): Promise<string> {
  return readFile(file, 'utf8').then(
    (text) => text.slice(-3000),
    () => '',
  );
}

/** Returns the total processor time so far, ms: of the processes, Redis, and PostgreSQL for this database. */
export type Usage = { readonly parley: number; readonly redis: number; readonly database: number };

export async function usageOf(ground: Ground, processes: readonly Parley[]): Promise<Usage> {
  const known = backendTimes.get(ground) ?? new Map<number, number>();
  backendTimes.set(ground, known);
  for (const pid of await backendsOf(ground)) known.set(pid, cpuMs(pid));
  return {
    parley: sum(processes.map(({ pid }) => cpuMs(pid))),
    redis: cpuMs(ground.redis.pid),
    database: sum([...known.values()]),
  };
}

/** Remembers the times of connections, so that those closed since are counted too. */
const backendTimes = new WeakMap<Ground, Map<number, number>>();

/** Returns PostgreSQL's processes for this database's connections, which must be on this machine. */
async function backendsOf({ kind, database }: Ground): Promise<readonly number[]> {
  if (kind === 'SQLite') return [];
  const rows = await database.query(
    "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'",
  );
  return rows.map(({ pid }) => Number(pid));
}

export function redisMb({ redis }: Ground): number {
  return residentMb(redis.pid);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
