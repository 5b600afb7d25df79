/** Several processes of one installation on one database, one Redis, one Telegram and one model. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type AnthropicServer, startAnthropicServer } from '../platforms/anthropic/server.ts';
import { startTelegramServer, type TelegramServer } from '../platforms/telegram/server.ts';
import { patienceMs } from '../support/patience.ts';
import { findBreachesIn, quoted, type Read, readStore } from './conservation.ts';
import type { Account, Asked } from './crowd-report.ts';
import { checkCrowd } from './crowd-report.ts';
import { type DiscordSide, openDiscordSide } from './discord-side.ts';
import { makeDatabase } from './own-database.ts';
import { loadable, type ParleyProcess, startParley } from './parley-process.ts';
import { type OwnRedis, startOwnRedis } from './redis-faults.ts';
import { until } from './until.ts';

export type Role = 'all' | 'gateway' | 'worker';

export type MemberOptions = {
  readonly role?: Role;
  /** `<kill point>:<nth time>`: there the process stops itself, as SIGSTOP does. */
  readonly stopAt?: string;
};

export type Member = ParleyProcess & {
  readonly name: string;
  /** Sends SIGSTOP: the process and its children stop, their connections stay open. */
  pause(): void;
  continueRun(): void;
  /** True once all of them are stopped. */
  isPaused(): boolean;
};

export type Installation = {
  /** Present if the installation was opened with it. */
  readonly discord: DiscordSide | undefined;
  readonly telegram: TelegramServer;
  readonly model: AnthropicServer;
  readonly redis: OwnRedis;
  readonly read: Read;
  /** Starts a process, under the same name again after it has ended. Resolves when it is ready. */
  start(name: string, options?: MemberOptions): Promise<Member>;
  /** Everything a member has logged in all its lives. */
  logOf(name: string): string;
  /** The executions of the effect plugin's tools, oldest first. */
  effects(): readonly string[];
  /** How many messages were said and haven't ended. */
  onTheWay(): Promise<number>;
  /** Waits until `events` platform events are recorded and everything accepted has ended. */
  untilAtRest(events: number, deadlineMs?: number): Promise<void>;
  account(asked: readonly Asked[], isFollowup: (person: number) => boolean): Promise<Account>;
};

export type InstallationOptions = {
  readonly config: Readonly<Record<string, unknown>>;
  /** On PostgreSQL each process has its own data folder, as if on its own host. */
  readonly database: 'postgres' | 'sqlite';
  readonly withDiscord?: boolean;
};

type AtEnd = (end: () => Promise<void>) => void;

/** `atEnd`: vitest's `onTestFinished`; everything is closed then, what was opened last first. */
export async function openInstallation(
  { config, database, withDiscord = false }: InstallationOptions,
  atEnd: AtEnd,
): Promise<Installation> {
  const home = await mkdtemp(join(tmpdir(), 'parley-processes-'));
  atEnd(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));
  const [telegram, model] = await Promise.all([startTelegramServer(), startAnthropicServer()]);
  atEnd(async () => void (await Promise.all([telegram.close(), model.close()])));
  const discord = withDiscord ? await openDiscordSide(home) : undefined;
  atEnd(async () => discord?.close());
  const redis = await startOwnRedis(atEnd);
  const { read, env: databaseEnv } =
    database === 'postgres' ? await openPostgres(atEnd) : { read: readerOf(home), env: {} };
  const members = new Map<string, ParleyProcess>();
  atEnd(async () => void (await Promise.all([...members.values()].map((member) => member.kill()))));
  const effectsFile = join(home, 'effects');
  const folderOf = (name: string) => join(home, database === 'postgres' ? name : 'data');

  const start = async (name: string, { role = 'all', stopAt }: MemberOptions = {}): Promise<Member> => {
    const dataDir = folderOf(name);
    await mkdir(dataDir, { recursive: true });
    const configFile = join(home, `${role}.json`);
    await writeFile(configFile, JSON.stringify({ ...config, role }));
    const parley = await startParley({
      dataDir,
      logFile: join(home, `${name}.log`),
      env: {
        ...databaseEnv,
        ...discord?.environment,
        ...(stopAt !== undefined && { STOP_AT: stopAt }),
        REDIS_URL: redis.socketPath,
        ...telegram.environment,
        ...model.environment,
        PARLEY_DM_POLICY: 'open',
        PARLEY_LOG_LEVEL: 'info',
        PARLEY_CONFIG: configFile,
        EFFECTS_FILE: effectsFile,
        TEST_PLUGIN: loadable('effect-plugin'),
      },
    });
    members.set(name, parley);
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

  const effects = () => textIn(effectsFile).split('\n').slice(0, -1);
  const onTheWay = async (): Promise<number> => {
    const [row] = await read(`select count(*) as open from inbox where state <> 'ended'`);
    return telegram.updates.pending.length + Number(row?.open);
  };

  return {
    ...{ telegram, discord, model, redis, read, start, untilAtRest, onTheWay },
    logOf: (name) => textIn(join(home, `${name}.log`)),
    effects,
    account: (asked, isFollowup) =>
      checkCrowd({ telegram, model, read, asked, isFollowup, effects: effects() }),
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

function readerOf(home: string): Read {
  return async (sql) => readStore(join(home, 'data'), sql);
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
