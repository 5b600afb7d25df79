import { count, round, type Sheet } from '../sheet.ts';
import { type Ground, type Parley, prepareGround, startProcess, type Usage, usageOf } from './farm.ts';
import { Histogram } from './histogram.ts';
import type { Load, LoadResult } from './load.ts';
import { readPattern, seedLanes } from './seed.ts';

export type ThroughputPace = {
  /** Numbers of workers in addition to the gateway; 0: one process does everything. */
  readonly lanesOf: ReadonlyMap<number, readonly number[]>;
  readonly fullMs: number;
  readonly pacedMs: number;
};

const pacedPerSecond = 50;

/** Measures processor time per message, and messages per second, by the number of lanes and processes. */
export async function measureThroughput(
  kind: Ground['kind'],
  postgres: string | undefined,
  pace: ThroughputPace,
): Promise<Sheet> {
  const rows: (readonly string[])[] = [];
  for (const [workers, lanesOf] of pace.lanesOf) {
    const ground = await prepareGround(kind, postgres);
    const processes: Parley[] = [];
    try {
      await startAll(ground, workers, processes);
      const pattern = await readPattern(ground.database);
      let seeded = 1;
      for (const lanes of lanesOf) {
        if (lanes > seeded) await seedLanes(ground.database, pattern, { from: seeded, to: lanes });
        seeded = Math.max(seeded, lanes);
        rows.push(await measureCell({ ground, processes, lanes, pace }));
        console.log(rows.at(-1)?.join('  '));
      }
    } finally {
      await Promise.all(processes.map((one) => one.stop()));
      await ground.close();
    }
  }
  return {
    title: `${kind}: messages per second, and their cost, by lanes and processes`,
    about: [
      '200 messages are always in progress; `hot`: half of them go to 1 % of the lanes. Processor time is that of all Parley processes, of Redis and of the database’s connections, per message.',
      `Latency at ${pacedPerSecond} messages/s, evenly spread, p50 / p99: until the model is called, and until the answer is sent.`,
    ],
    heads: [
      'processes',
      'lanes',
      'messages/s',
      'hot',
      'Parley ms',
      'Redis ms',
      'database ms',
      '→ model ms',
      '→ sent ms',
      'full: → sent ms',
    ],
    rows,
  };
}

/** Starts one process that does everything, or a receiving one and workers. In the end, lane 0 has had a message. */
export async function startAll(ground: Ground, workers: number, into: Parley[]): Promise<void> {
  const first = await startProcess({ ground, role: workers === 0 ? 'all' : 'gateway' });
  into.push(first);
  await first.next('receiving');
  for (let number = 1; number <= workers; number++)
    into.push(await startProcess({ ground, number, role: 'worker' }));
  await Promise.all(into.map((one) => one.next('ready')));
  for (const other of into.slice(1))
    other.onReport((report) => {
      if (report.kind === 'sent') first.tell(report);
    });
  await offer(first, { lanes: 1, isHot: false, durationMs: 1, inHand: 1 });
}

export async function offer(receiver: Parley, load: Load): Promise<LoadResult> {
  receiver.tell({ kind: 'load', load });
  return (await receiver.next('loaded', 2 * load.durationMs + 180_000)).result;
}

type Cell = {
  readonly ground: Ground;
  readonly processes: readonly Parley[];
  readonly lanes: number;
  readonly pace: ThroughputPace;
};

async function measureCell({ ground, processes, lanes, pace }: Cell): Promise<readonly string[]> {
  const [receiver] = processes;
  if (!receiver) throw new Error('no process receives');
  await offer(receiver, { lanes, isHot: false, durationMs: 500 });
  await timesOf(processes);
  const before = await usageOf(ground, processes);
  const even = await offer(receiver, { lanes, isHot: false, durationMs: pace.fullMs });
  const spent = difference(before, await usageOf(ground, processes), even.messages);
  const full = await timesOf(processes);
  const hot = await offer(receiver, { lanes, isHot: true, durationMs: pace.fullMs / 2 });
  await timesOf(processes);
  await offer(receiver, { lanes, isHot: false, durationMs: pace.pacedMs, perSecond: pacedPerSecond });
  const paced = await timesOf(processes);
  return [
    processes.length === 1 ? 'one, all roles' : `gateway + ${processes.length - 1}`,
    count(lanes),
    count(perSecond(even)),
    count(perSecond(hot)),
    round(spent.parley, 2),
    round(spent.redis, 2),
    round(spent.database, 2),
    middleAndTail(paced.accepted),
    middleAndTail(paced.sent),
    middleAndTail(full.sent),
  ];
}

export async function timesOf(processes: readonly Parley[], collectsGarbage = false) {
  const accepted = new Histogram();
  const sent = new Histogram();
  const all = await Promise.all(processes.map((one) => one.figures(collectsGarbage)));
  for (const figures of all) {
    accepted.merge(figures.accepted);
    sent.merge(figures.sent);
  }
  return { accepted, sent, all };
}

export function middleAndTail(times: Histogram): string {
  return `${round(times.quantile(0.5))} / ${round(times.quantile(0.99))}`;
}

function perSecond({ messages, elapsedMs }: LoadResult): number {
  return (messages / elapsedMs) * 1000;
}

function difference(before: Usage, after: Usage, messages: number): Usage {
  const per = (name: keyof Usage) => (after[name] - before[name]) / messages;
  return { parley: per('parley'), redis: per('redis'), database: per('database') };
}
