import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClaimedRun } from '../src/store/lanes/claim-lane.ts';
import type { Reply } from '../test/platforms/anthropic/turn.ts';
import { aFamilyWorker } from '../test/store/family.ts';
import { openStore } from '../test/support/open-store.ts';
import { now } from './clock.ts';
import type { Figure } from './figure.ts';
import { botSays } from './network.ts';
import { type Bench, withParley } from './pair.ts';
import { residentMb } from './process-figures.ts';
import { median } from './statistics.ts';

/** (12) Measures the model's call → the sub-agent's first request, against a person's message → its request. */
export async function measureChildren(parley: Bench, rounds: number): Promise<readonly Figure[]> {
  const inbound: number[] = [];
  const spawned: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { inboundMs, spawnMs } = await oneRound(parley, round);
    inbound.push(inboundMs);
    spawned.push(spawnMs);
  }
  const [ordinary, child] = [median(inbound), median(spawned)];
  return [
    { name: 'message → its model request', unit: 'ms', parley: ordinary, target: '' },
    { name: 'spawn → first request of the sub-agent', unit: 'ms', parley: child, target: '' },
    { name: 'ratio of the two', unit: '×', parley: child / ordinary, target: '≤ 3 ×' },
  ];
}

async function oneRound({ networks: [network], model }: Bench, round: number) {
  const person = 60_000 + round;
  let askedAt: number | undefined;
  model.answerWith(({ texts }): Reply => {
    const last = texts.at(-1) ?? '';
    if (last === `part ${round}`) return { text: 'The part.' };
    if (last.includes('Sub-agent')) return { text: 'ANNOUNCE_SKIP' };
    if (askedAt !== undefined) return { text: `done ${round}` };
    askedAt = now();
    return { toolCalls: [{ name: 'sessions_spawn', input: { task: `part ${round}` } }] };
  });
  const heard = model.hears(`spawn ${round}`);
  const child = model.hears(`part ${round}`);
  const done = botSays(network, person, `done ${round}`);
  const sentAt = now();
  network.say(person, `spawn ${round}`);
  const [{ at: heardAt }, { at: childAt }] = await Promise.all([heard, child, done]);
  return { inboundMs: heardAt - sentAt, spawnMs: childAt - (askedAt ?? Number.NaN) };
}

const crowd = 100;

/** All sub-agents may run at the same time, so that the memory measured is that of all of them. */
const crowded = {
  subagents: { maxChildrenPerAgent: crowd, tree: { nodes: crowd } },
  lanes: { concurrency: { 'sub-1': crowd } },
};

/** (12) Measures a run that starts a hundred sub-agents in one turn and awaits them all: their pace and memory. */
export function measureCrowd(repeats: number): Promise<readonly Figure[]> {
  const settings = { settings: crowded };
  const measure = async (parley: Bench): Promise<readonly Figure[]> => {
    // The first crowd warms everything up.
    await oneCrowd(parley, 0);
    const crowds: Crowd[] = [];
    for (let round = 1; round <= repeats; round++) crowds.push(await oneCrowd(parley, round));
    const of = (read: (one: Crowd) => number) => median(crowds.map(read));
    const name = `${crowd} sub-agents at once`;
    return [
      {
        name: `${name}: the call → the last one's request`,
        unit: 'ms',
        parley: of((one) => one.startMs),
        target: '',
      },
      {
        name: `${name}: their answers → their parent's`,
        unit: 'ms',
        parley: of((one) => one.endMs),
        target: '',
      },
      {
        ...{ name: `${name}: sub-agents per second`, unit: '/s', target: '' },
        parley: of(({ startMs, endMs }) => (crowd / (startMs + endMs)) * 1000),
      },
      { name: `${name}: additional memory`, unit: 'MB', parley: of((one) => one.moreMb), target: '' },
    ];
  };
  return withParley(['telegram'], measure, settings);
}

type Crowd = { readonly startMs: number; readonly endMs: number; readonly moreMb: number };

async function oneCrowd({ networks: [network], model, subject }: Bench, round: number): Promise<Crowd> {
  const task = (n: number) => `part ${n} of ${round}.`;
  const tasks = new Set(Array.from({ length: crowd }, (_, n) => task(n)));
  const all = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  let askedAt: number | undefined;
  model.answerWith(async ({ texts }): Promise<Reply> => {
    const last = texts.at(-1) ?? '';
    if (/^part \d+ of \d+\.$/.test(last)) {
      tasks.delete(last);
      if (tasks.size === 0) all.resolve();
      await released.promise;
      return { text: `The ${last}` };
    }
    if (askedAt !== undefined) return { text: `crowd ${round} done` };
    askedAt = now();
    const inputs = Array.from({ length: crowd }, (_, n) => ({ task: task(n), wait: true }));
    return { toolCalls: inputs.map((input) => ({ name: 'sessions_spawn', input })) };
  });
  const before = residentMb(subject.pid);
  const done = botSays(network, 70_000 + round, `crowd ${round} done`, 120_000);
  network.say(70_000 + round, `crowd ${round}`);
  await all.promise;
  const startMs = now() - (askedAt ?? Number.NaN);
  const moreMb = residentMb(subject.pid) - before;
  const releasedAt = now();
  released.resolve();
  const { at } = await done;
  return { startMs, endMs: at - releasedAt, moreMb };
}

/** (12) Measures the processor time of the commit that ends a run, on its own and with three sessions above it. */
export async function measureFinish(runs: number): Promise<readonly Figure[]> {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  const store = await openStore({ kind: 'sqlite', dataDir });
  try {
    const worker = aFamilyWorker(store);
    const child = async () => {
      let { run } = await worker.begin();
      for (let depth = 1; depth <= 3; depth++)
        run = await worker.claimRun((await worker.spawnOne(run)).laneKey, 600_000);
      return run;
    };
    const answer = (run: ClaimedRun) => worker.answer(run, 'An answer of some length. '.repeat(10));
    const plain = async () => (await worker.begin()).run;
    await timedEach(20, plain, answer);
    await timedEach(20, child, answer);
    const without = await timedEach(runs, plain, answer);
    const above = await timedEach(runs, child, answer);
    return [
      { name: 'end of a run: processor time', unit: 'ms', parley: without, target: '' },
      {
        name: 'end of a sub-agent, three sessions above it: processor time',
        unit: 'ms',
        parley: above,
        target: '',
      },
    ];
  } finally {
    await store.close();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Returns the processor time of `act` per item made by `prepare`, ms, including the writer thread's. */
async function timedEach<T>(
  count: number,
  prepare: () => Promise<T>,
  act: (prepared: T) => Promise<unknown>,
): Promise<number> {
  const all: T[] = [];
  for (let index = 0; index < count; index++) all.push(await prepare());
  const since = process.cpuUsage();
  for (const one of all) await act(one);
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000 / count;
}
