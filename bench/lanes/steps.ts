import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from '../../src/store/base/command.ts';
import { type ClaimedDelivery, recordDelivery } from '../../src/store/delivery/claim-delivery.ts';
import { acceptBatch } from '../../src/store/intake/accept-batch.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { account, aLane, aMessage, aWorker, defaults, framing, holder } from '../../test/store/builders.ts';
import { openMemoryStore } from '../../test/support/memory-store.ts';
import { openStore } from '../../test/support/open-store.ts';
import { countRoundTrips } from '../../test/support/round-trips.ts';
import { now } from '../clock.ts';
import { count, round, type Sheet } from '../sheet.ts';
import { createPostgres, type Database } from './database.ts';

const atOnce = 64;
const batchSize = 50;
const names = ['accept, claim, take', 'answer, close, claim the delivery', 'settle the delivery'] as const;
const question =
  'a question about as long as people write them, with a second half that says what it is about.';
const answer = 'An answer of middle length, as models give them to short questions. '.repeat(5);

/** Measures the store alone: what each of a message's three commits takes. */
export async function measureSteps(postgres: string | undefined, messages: number): Promise<Sheet> {
  const statements = await countStatements();
  const kinds: readonly Database['kind'][] = postgres === undefined ? ['SQLite'] : ['SQLite', 'PostgreSQL'];
  const rows: (readonly string[])[] = [];
  for (const kind of kinds) {
    const { store, close } = await openEmpty(kind, postgres);
    try {
      const steps = await stepsOf(store);
      await carryOut(steps, { first: 0, messages: 2 * batchSize }, (_, act) => act());
      const trips = new Map<string, number>();
      await carryOut(steps, { first: 0, messages: 1 }, async (name, act) => {
        trips.set(name, await countRoundTrips(act));
      });
      await carryOut(steps, { first: 1_000_000, messages }, async (name, act) => {
        const counts = [String(statements.get(name)), kind === 'SQLite' ? '–' : String(trips.get(name))];
        rows.push([`${kind}: ${name}`, ...(await timed(messages, act)), ...counts]);
      });
    } finally {
      await close();
    }
  }
  return {
    title: 'The store alone',
    about: [
      `${count(messages)} messages to as many new lanes; each step is a commit with full fsync. Messages are accepted in batches of ${batchSize}, one batch at`,
      `a time, as from one bot account, whose row every batch locks; they are answered and settled ${atOnce} at a time. Processor time`,
      'is that of this process, without PostgreSQL’s own. Statements and round trips are those of one message in a known lane,',
      'alone in its batch.',
    ],
    heads: ['step', 'messages/s', 'processor ms', 'statements', 'round trips'],
    rows,
  };
}

type Steps = Awaited<ReturnType<typeof stepsOf>>;

/** Runs each step for all lanes before the next one. */
async function carryOut(
  steps: Steps,
  { first, messages }: { readonly first: number; readonly messages: number },
  around: (name: string, act: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const lanes = Array.from({ length: messages }, (_, index) => first + index);
  const batches = Array.from({ length: Math.ceil(messages / batchSize) }, (_, index) =>
    lanes.slice(index * batchSize, (index + 1) * batchSize),
  );
  await around(names[0], () => together(batches, 1, steps.accept));
  await around(names[1], () => together(lanes, atOnce, steps.reply));
  await around(names[2], () => together(lanes, atOnce, steps.settle));
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

/** Returns the three commits of a message in a lane; each continues where the previous one ended. */
async function stepsOf(store: Store) {
  const worker = aWorker(store);
  const epoch = await worker.hold();
  const runs = new Map<number, ClaimedRun>();
  const deliveries = new Map<number, ClaimedDelivery>();
  const policy = { holder, leaseMs: 60_000, repeatSafeMs: 0, canLookUp: false, resendUnknown: false };
  const accept = async (lanes: readonly number[]) => {
    const proposals = lanes.map((lane) => {
      const conversation = `c${lane}`;
      const spec = aLane(conversation, { settings: { ...defaults, mode: 'followup' } });
      return aMessage({ conversation, text: question, lane: spec });
    });
    const newRunIds = lanes.map(() => crypto.randomUUID());
    const claims = {
      holder,
      leaseMs: 60_000,
      framing,
      maxAttempts: 3,
      models: { byAgent: {}, byDefault: 'demo' },
      class: 'main',
      newRunIds,
    };
    const batch = { account, epoch, holder, proposals, links: undefined, claims };
    const accepted = await store.write(acceptBatch, batch);
    for (const [index, lane] of lanes.entries()) runs.set(lane, existing(accepted.runs[index]));
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
    await store.write(recordDelivery, { ...terms, result, claimsNext: true });
  };
  return { accept, reply, settle };
}

async function timed(messages: number, act: () => Promise<void>): Promise<readonly string[]> {
  const cpu = process.cpuUsage();
  const began = now();
  await act();
  const perSecond = (messages / (now() - began)) * 1000;
  const { user, system } = process.cpuUsage(cpu);
  return [count(perSecond), round((user + system) / 1000 / messages, 2)];
}

async function together<Item>(
  items: readonly Item[],
  count: number,
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const left = [...items];
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await act(next);
  };
  await Promise.all(Array.from({ length: count }, work));
}

/** Counts the statements of each step, without those that begin and end the transaction. */
async function countStatements(): Promise<ReadonlyMap<string, number>> {
  let ran = 0;
  const counted =
    <Result>(run: (values: unknown[]) => Result) =>
    (values: unknown[]): Result => {
      ran += 1;
      return run(values);
    };
  const { store, sqlite } = await openMemoryStore((connection) => (text) => {
    const statement = connection.prepare(text);
    return {
      reader: statement.reader,
      all: counted((values: unknown[]) => statement.all(values)),
      get: counted((values: unknown[]) => statement.get(values)),
      run: counted((values: unknown[]) => statement.run(values)),
    };
  });
  const steps = await stepsOf(store);
  const counts = new Map<string, number>();
  // The first message creates the lane and its session; the second is an ordinary one.
  for (let message = 1; message <= 2; message++) {
    await carryOut(steps, { first: 0, messages: 1 }, async (name, act) => {
      ran = 0;
      await act();
      counts.set(name, ran);
    });
  }
  sqlite.close();
  return counts;
}

function existing<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the step before this one left nothing');
  return value;
}
