/** A stage for several processes on one database and one Redis of their own, which can be stopped and continued. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { patienceMs } from '../support/patience.ts';
import { findBreachesIn, quoted, type Read, readStore } from './conservation.ts';
import { type Account, type Asked, checkCrowd } from './crowd-report.ts';
import { makeDatabase } from './own-database.ts';
import type { ParleyProcess } from './parley-process.ts';
import { type OwnRedis, startOwnRedis } from './redis-faults.ts';
import { type AtEnd, openStage, type Stage, type StageSettings, type StartOptions } from './stage.ts';
import { until } from './until.ts';

export type Role = 'all' | 'gateway' | 'worker';
export type MemberOptions = Pick<StartOptions, 'role' | 'stopAt' | 'env'>;

export type Member = ParleyProcess & {
  readonly name: string;
  /** Sends SIGSTOP: the process and its children stop, their connections stay open. */
  pause(): void;
  continueRun(): void;
  /** True once all of them are stopped. */
  isPaused(): boolean;
};

export type Installation = Omit<Stage, 'start'> & {
  readonly redis: OwnRedis;
  readonly read: Read;
  /** Starts a process, under the same name again after it has ended. Resolves when it is ready. */
  start(name: string, options?: MemberOptions): Promise<Member>;
  /** Everything a member has logged in all its lives. */
  logOf(name: string): string;
  /** How many messages were said and haven't ended. */
  onTheWay(): Promise<number>;
  /** Waits until `events` platform events are recorded and everything accepted has ended. */
  untilAtRest(events: number, deadlineMs?: number): Promise<void>;
  account(asked: readonly Asked[], isFollowup: (person: number) => boolean): Promise<Account>;
};

export type InstallationOptions = Pick<StageSettings, 'config' | 'networks'> & {
  /** On PostgreSQL each process has its own data folder, as if on its own host. */
  readonly database: 'postgres' | 'sqlite';
};

/** `atEnd`: vitest's `onTestFinished`; everything is closed then, what was opened last first. */
export async function openInstallation(
  { database, ...settings }: InstallationOptions,
  atEnd: AtEnd,
): Promise<Installation> {
  const redis = await startOwnRedis(atEnd);
  const postgres = database === 'postgres' ? await openPostgres(atEnd) : undefined;
  const env = { ...postgres?.env, REDIS_URL: redis.socketPath, PARLEY_LOG_LEVEL: 'info' };
  const stage = await openStage({ ...settings, env }, atEnd);
  const { telegram, model, home, dataDir } = stage;
  const read: Read = postgres?.read ?? (async (sql) => readStore(dataDir, sql));
  const logFileOf = (name: string) => join(home, `${name}.log`);

  const start = async (name: string, options: MemberOptions = {}): Promise<Member> => {
    const own = { ...(postgres && { folder: name }), logFile: logFileOf(name) };
    const parley = await stage.start({ ...own, ...options });
    return { ...parley, name, ...pausing(parley.pid) };
  };

  const untilAtRest = async (events: number, deadlineMs = patienceMs): Promise<void> => {
    let open: readonly string[] = [];
    const isAtRest = async () => {
      const [ledger] = await read('select count(*) as events from ledger');
      if (Number(ledger?.events) < events) open = [`${ledger?.events} of ${events} events are written down`];
      else open = await findBreachesIn(read, 'unfinished');
      return open.length === 0;
    };
    await until(isAtRest, { what: 'all is at rest', deadlineMs }).catch((cause: unknown) => {
      throw new Error(`not at rest:\n${open.slice(0, 20).join('\n')}`, { cause });
    });
  };

  const onTheWay = async (): Promise<number> => {
    const [row] = await read(`select count(*) as open from inbox where state <> 'ended'`);
    return telegram.updates.pending.length + Number(row?.open);
  };

  return {
    ...{ ...stage, redis, read, start, untilAtRest, onTheWay },
    logOf: (name) => textIn(logFileOf(name)),
    account: (asked, isFollowup) =>
      checkCrowd({ telegram, model, read, asked, isFollowup, effects: stage.effects() }),
  };
}

function pausing(pid: number): Pick<Member, 'pause' | 'continueRun' | 'isPaused'> {
  return {
    pause: () => void process.kill(pid, 'SIGSTOP'),
    continueRun: () => void process.kill(pid, 'SIGCONT'),
    isPaused: () => textIn(`/proc/${pid}/stat`).split(') ')[1]?.startsWith('T') ?? false,
  };
}

function textIn(path: string): string {
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

async function openPostgres(atEnd: AtEnd): Promise<{ read: Read; env: Record<string, string> }> {
  const { url } = await makeDatabase(atEnd);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  client.on('error', () => undefined);
  atEnd(() => client.end());
  const read: Read = async (sql) => (await client.query(sql)).rows as Awaited<ReturnType<Read>>;
  return { read, env: { DATABASE_URL: url } };
}

/** Returns how often a run was taken over from a holder that was gone. */
export async function countTakeovers({ read }: Installation): Promise<number> {
  const [row] = await read(quoted('select coalesce(sum(epoch), 0) as epochs from lanes'));
  const [runs] = await read('select count(*) as runs from runs');
  return Number(row?.epochs) - Number(runs?.runs);
}
