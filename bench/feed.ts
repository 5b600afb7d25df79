import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { readProcessAddresses } from '../src/processes/process-address.ts';
import type { Reply } from '../test/platforms/anthropic/turn.ts';
import type { Figure } from './figure.ts';
import { botSays } from './network.ts';
import type { Bench } from './pair.ts';
import { cpuMs, residentMb } from './process-figures.ts';
import { median, quantile } from './statistics.ts';

const person = 90_001;
const followers = 200;
const openFeeds = 1_000;
/** An answer of 200 words, written word by word. */
const words = Array.from({ length: 200 }, (_, index) => `word${index} `);

/**
 * Measures what followers of one lane cost its runs, in alternating rounds, and how soon they learn of a commit.
 */
export async function measureFeed(parley: Bench, rounds: number): Promise<readonly Figure[]> {
  const feeds = await openFeedsOf(parley);
  await oneRun(parley, 'warm up');
  const session = sessionIn(parley);
  const paced = await compare(parley, { feeds, session, rounds, chunkDelayMs: 5 });
  const atOnce = await compare(parley, { feeds, session, rounds, chunkDelayMs: 0 });
  const delays = await measureDelays(parley, { feeds, session, rounds });
  const ms = (name: string, value: number): Figure => ({ name, unit: 'ms', parley: value, target: '' });
  return [
    ms('200 words at a model’s pace, alone', paced.without),
    ms(`the same with ${followers} followers`, paced.followed),
    { name: 'slower', unit: '%', parley: (paced.followed / paced.without - 1) * 100, target: '≤ 5 %' },
    ms('processor time of such a run, alone', paced.withoutCpu),
    ms(`the same with ${followers} followers`, paced.followedCpu),
    ms('200 words at once, alone', atOnce.without),
    ms(`the same with ${followers} followers`, atOnce.followed),
    ms('commit of a run’s start → its event, half of them within', quantile(delays.started, 0.5)),
    ms('commit of a run’s start → its event, 95 % within', quantile(delays.started, 0.95)),
    ms('commit of a run’s end → its event, half of them within', quantile(delays.ended, 0.5)),
    ms('commit of a run’s end → its event, 95 % within', quantile(delays.ended, 0.95)),
  ];
}

/** Measures the memory of many open feeds, in a process that has done little else. */
export async function measureFeedMemory(parley: Bench): Promise<readonly Figure[]> {
  const feeds = await openFeedsOf(parley);
  await oneRun(parley, 'warm up');
  const session = sessionIn(parley);
  for (const reader of await feeds.open(session, 100)) reader.destroy();
  await sleep(restMs);
  const before = residentMb(parley.subject.pid);
  const readers = await feeds.open(session, openFeeds);
  await sleep(restMs);
  const memory = residentMb(parley.subject.pid) - before;
  for (const reader of readers) reader.destroy();
  const name = `memory of ${openFeeds.toLocaleString('en')} open feeds`;
  return [{ name, unit: 'MB', parley: memory, target: '' }];
}

/** Until what a start or a connection leaves behind is collected. */
const restMs = 10_000;

type Comparison = {
  readonly feeds: Feeds;
  readonly session: string;
  readonly rounds: number;
  readonly chunkDelayMs: number;
};

async function compare(parley: Bench, { feeds, session, rounds, chunkDelayMs }: Comparison) {
  const [without, followed, withoutCpu, followedCpu]: number[][] = [[], [], [], []];
  const measure = async (name: string, times: number[] = [], cpuTimes: number[] = []) => {
    const before = cpuMs(parley.subject.pid);
    times.push(await oneRun(parley, name, chunkDelayMs));
    cpuTimes.push(cpuMs(parley.subject.pid) - before);
  };
  for (let round = 0; round < rounds; round += 1) {
    await measure(`alone ${chunkDelayMs} ${round}`, without, withoutCpu);
    const readers = await feeds.open(session, followers);
    await measure(`followed ${chunkDelayMs} ${round}`, followed, followedCpu);
    for (const reader of readers) reader.destroy();
    await sleep(100);
  }
  const middle = (values: readonly number[] = []) => median(values);
  return {
    ...{ without: middle(without), followed: middle(followed) },
    ...{ withoutCpu: middle(withoutCpu), followedCpu: middle(followedCpu) },
  };
}

async function oneRun(
  { networks: [network], model }: Bench,
  text: string,
  chunkDelayMs = 0,
): Promise<number> {
  const reply: Reply = { chunks: [...words, `${text}.`], chunkDelayMs };
  model.answerWith(() => reply);
  const said = botSays(network, person, `${text}.`);
  const sentAt = network.say(person, text);
  return (await said).at - sentAt;
}

type Feeds = {
  /** Opens feeds whose readers take everything and look at nothing; resolves once each has its snapshot. */
  open(session: string, count: number): Promise<readonly Socket[]>;
};

async function openFeedsOf({ subject }: Bench): Promise<Feeds> {
  const dataDir = join(subject.home, 'data');
  const token = (await readFile(join(dataDir, 'token'), 'utf8')).trim();
  const [address] = await readProcessAddresses(dataDir);
  const port = Number(new URL(address?.url ?? '').port);
  const openOne = async (session: string, index: number) => {
    // An address may have 128 connections.
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (index % 20)}` });
    const query = new URLSearchParams({ session });
    socket.write(
      `GET /api/feed?${query} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
    for (let text = ''; !text.includes('"type":"snapshot"'); ) {
      const [chunk] = await once(socket, 'data');
      text += chunk;
    }
    socket.on('error', () => undefined);
    return socket;
  };
  return {
    open: async (session, count) => {
      const sockets: Socket[] = [];
      for (let first = 0; first < count; first += 50) {
        const some = Array.from({ length: Math.min(50, count - first) }, (_, at) => first + at);
        sockets.push(...(await Promise.all(some.map((index) => openOne(session, index)))));
      }
      for (const socket of sockets) socket.removeAllListeners('data').resume();
      return sockets;
    },
  };
}

function readRows<Row>({ subject }: Bench, sql: string): readonly Row[] {
  const database = new Database(join(subject.home, 'data', 'parley.db'), { readonly: true });
  try {
    return database.prepare(sql).all() as Row[];
  } finally {
    database.close();
  }
}

function sessionIn(bench: Bench): string {
  const [lane] = readRows<{ readonly key: string }>(
    bench,
    `select key from lanes where key like '%${person}'`,
  );
  return lane?.key ?? '';
}

/** Returns the times between the commits of runs and their events at one follower, ms, by the clock of the rows. */
async function measureDelays(
  parley: Bench,
  { feeds, session, rounds }: { readonly feeds: Feeds; readonly session: string; readonly rounds: number },
) {
  const [reader] = await feeds.open(session, 1);
  const heard = new Map<string, number>();
  reader?.on('data', (chunk: Buffer) => {
    const at = Date.now();
    for (const [, runId, state] of `${chunk}`.matchAll(/"kind":"run","runId":"([^"]+)","state":"(\w+)"/g))
      heard.set(`${runId} ${state}`, at);
  });
  const since = Date.now();
  for (let round = 0; round < 2 * rounds; round += 1) {
    await oneRun(parley, `heard ${round}`);
    await sleep(300);
  }
  reader?.destroy();
  type Run = { readonly id: string; readonly startedAt: number; readonly endedAt: number };
  const runs = readRows<Run>(parley, `select id, startedAt, endedAt from runs where startedAt >= ${since}`);
  const delay = ({ id, startedAt, endedAt }: Run, state: 'started' | 'ended') =>
    (heard.get(`${id} ${state}`) ?? Number.NaN) - (state === 'started' ? startedAt : endedAt);
  return {
    started: runs.map((run) => delay(run, 'started')).filter((ms) => !Number.isNaN(ms)),
    ended: runs.map((run) => delay(run, 'ended')).filter((ms) => !Number.isNaN(ms)),
  };
}
