import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import type { Store } from '../../src/store/command.ts';
import { type ClaimedDelivery, settleDelivery } from '../../src/store/delivery/deliver.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { migrate } from '../../src/store/migrate.ts';
import { openStore } from '../../src/store/open-store.ts';
import { cacheStatements } from '../../src/store/sqlite/cached-database.ts';
import { directDatabase } from '../../src/store/sqlite/direct-database.ts';
import { account, aLane, aMessage, aWorker, defaults, framing, holder } from '../../test/store/builders.ts';
import { now } from '../clock.ts';
import { createPostgres, type Database } from './database.ts';
import { Histogram } from './histogram.ts';
import { count, round, type Sheet } from './sheet.ts';

const atOnce = 64;
const question =
  'a question about as long as people write them, with a second half that says what it is about.';
const answer = 'An answer of middle length, as models give them to short questions. '.repeat(5);

/** The store alone: what each of the three commits of a message takes, so many at once. */
export async function measureSteps(postgres: string | undefined, messages: number): Promise<Sheet> {
  const statements = await countStatements();
  const kinds: readonly Database['kind'][] = postgres === undefined ? ['SQLite'] : ['SQLite', 'PostgreSQL'];
  const rows: (readonly string[])[] = [];
  for (const kind of kinds) {
    const { store, close } = await openEmpty(kind, postgres);
    try {
      const steps = await stepsOf(store);
      await inLanes(10, steps.all);
      for (const [index, [name, step]] of Object.entries(steps.each).entries()) {
        const { perSecond, times, cpuMs } = await timed(messages, step);
        const each = String(statements[index] ?? '–');
        rows.push([
          `${kind}: ${name}`,
          count(perSecond),
          round(times.quantile(0.5)),
          round(times.quantile(0.99)),
          round(cpuMs, 2),
          each,
        ]);
      }
      const { perSecond, times, cpuMs } = await timed(messages, (lane) => steps.all(lane + messages));
      const sum = String(statements.reduce((total, one) => total + one, 0));
      rows.push([
        `${kind}: all three`,
        count(perSecond),
        round(times.quantile(0.5)),
        round(times.quantile(0.99)),
        round(cpuMs, 2),
        sum,
      ]);
    } finally {
      await close();
    }
  }
  return {
    title: 'The store alone',
    about: [
      `${count(messages)} messages to as many new lanes, ${atOnce} at once, each step a commit with full fsync; commits that come together share`,
      'one on SQLite. Processor time is that of this process, PostgreSQL’s own not counted.',
    ],
    heads: ['step', '/s', 'p50 ms', 'p99 ms', 'processor ms', 'statements'],
    rows,
  };
}

async function openEmpty(kind: Database['kind'], postgres: string | undefined) {
  if (kind === 'PostgreSQL') {
    const database = await createPostgres(postgres ?? '');
    const store = await openStore({ kind: 'postgres', url: database.url ?? '' });
    const close = async () => {
      await store.close();
      await database.drop();
    };
    return { store, close };
  }
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  const store = await openStore({ kind: 'sqlite', dataDir: folder });
  const close = async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { store, close };
}

/** The three commits of a message in a lane; each finds what the one before it has left. */
async function stepsOf(store: Store) {
  const worker = aWorker(store);
  const epoch = await worker.hold();
  const runs = new Map<number, ClaimedRun>();
  const deliveries = new Map<number, ClaimedDelivery>();
  const policy = { holder, leaseMs: 60_000, repeatSafeMs: 0, canLookUp: false, resendUnknown: false };
  const accept = async (lane: number) => {
    const conversation = `c${lane}`;
    const spec = aLane(conversation, { settings: { ...defaults, mode: 'followup' } });
    const claims = { holder, leaseMs: 60_000, framing, maxTries: 3, gaveUpText: '', class: 'main' };
    const accepted = await store.write(acceptBatch, {
      account,
      epoch,
      holder,
      proposals: [aMessage({ conversation, text: question, lane: spec })],
      links: undefined,
      claims: { ...claims, newRunIds: [crypto.randomUUID()] },
    });
    runs.set(lane, existing(accepted.runs[0]));
  };
  const reply = async (lane: number) => {
    const answered = await worker.answer(existing(runs.get(lane)), answer, { sender: policy });
    runs.delete(lane);
    deliveries.set(lane, existing(answered.claimed));
  };
  const settle = async (lane: number) => {
    const { conversationKey, delivery } = existing(deliveries.get(lane));
    deliveries.delete(lane);
    if (delivery.kind !== 'part') throw new Error(`nothing was claimed: ${delivery.kind}`);
    const { epoch: claimed, part } = delivery;
    const result = { kind: 'sent', receipts: [] } as const;
    const terms = { ...policy, conversationKey, epoch: claimed, partKey: part.key };
    await store.write(settleDelivery, { ...terms, result, claimsNext: true });
  };
  const each = {
    'accept, claim, take': accept,
    'answer, close, claim the delivery': reply,
    'settle the delivery': settle,
  };
  const all = async (lane: number) => {
    for (const step of Object.values(each)) await step(lane);
  };
  return { each, all };
}

async function timed(messages: number, step: (lane: number) => Promise<void>) {
  const times = new Histogram();
  const cpu = process.cpuUsage();
  const began = now();
  await inLanes(messages, async (lane) => {
    const at = now();
    await step(100 + lane);
    times.add(now() - at);
  });
  const perSecond = (messages / (now() - began)) * 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond, times, cpuMs: (user + system) / 1000 / messages };
}

async function inLanes(messages: number, act: (lane: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < messages) await act(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** How many statements each step takes, without those that begin and end the transaction. */
async function countStatements(): Promise<readonly number[]> {
  const connection = new BetterSqlite3(':memory:');
  await migrate(new Kysely({ dialect: new SqliteDialect({ database: cacheStatements(connection) }) }));
  let ran = 0;
  const counted =
    <Result>(run: (values: unknown[]) => Result) =>
    (values: unknown[]): Result => {
      ran += 1;
      return run(values);
    };
  const counting = Object.assign(Object.create(connection) as typeof connection, {
    prepare: (sql: string) => {
      const statement = connection.prepare(sql);
      return {
        reader: statement.reader,
        all: counted((values: unknown[]) => statement.all(values)),
        run: counted((values: unknown[]) => statement.run(values)),
      };
    },
  });
  const db = directDatabase(counting);
  const tx = () => ({ db, now: Date.now(), dialect: 'sqlite' }) as const;
  const store: Store = {
    write: (command, input) => command.run(tx(), input),
    writeAlong: () => undefined,
    read: (query, input) => query.run(tx(), input),
    broken: new Promise(() => undefined),
    close: async () => undefined,
  };
  const { each, all } = await stepsOf(store);
  // A first message makes the lane and its session; the second is one as they come every day.
  await all(0);
  const counts: number[] = [];
  for (const step of Object.values(each)) {
    ran = 0;
    await step(0);
    counts.push(ran);
  }
  connection.close();
  return counts;
}

function existing<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the step before this one left nothing');
  return value;
}
