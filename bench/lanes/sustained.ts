import { setTimeout as sleep } from 'node:timers/promises';
import { count, round, type Sheet } from '../sheet.ts';
import { type Ground, type Parley, prepareGround, redisMb, usageOf } from './farm.ts';
import { readPattern, seedLanes } from './seed.ts';
import { middleAndTail, offer, startAll, timesOf } from './throughput.ts';

const perSecond = 500;
/** Each person writes every 20 s for the entire measurement. */
const lanes = 10_000;

export type SustainedPace = {
  readonly durationMs: number;
  /** Time between two readings. */
  readonly everyMs: number;
  /** Workers in addition to the receiving process; 0: it does everything. */
  readonly workers: number;
};

/** Measures a constant rate of messages over time: their cost must not grow, and in the end each is answered. */
export async function measureSustained(
  kind: Ground['kind'],
  postgres: string | undefined,
  { durationMs, everyMs, workers }: SustainedPace,
): Promise<Sheet> {
  const ground = await prepareGround(kind, postgres);
  const processes: Parley[] = [];
  try {
    await startAll(ground, workers, processes);
    await seedLanes(ground.database, await readPattern(ground.database), { from: 1, to: lanes });
    const [parley] = processes;
    if (!parley) throw new Error('no process runs');
    const rows: (readonly string[])[] = [];
    const began = performance.now();
    const look = async () => {
      const at = Math.round((performance.now() - began) / 1000);
      rows.push([`${at} s`, ...(await figuresOf(ground, processes))]);
      console.log(rows.at(-1)?.join('  '));
    };
    await look();
    const loaded = offer(parley, { lanes, isHot: false, durationMs, perSecond });
    const ended = loaded.then(() => true);
    while (!(await Promise.race([ended, sleep(everyMs, false)]))) await look();
    await look();
    const { messages, elapsedMs } = await loaded;
    return {
      title: `${kind}: ${perSecond} messages/s for ${round(durationMs / 60_000, 1)} minutes${workers > 1 ? `, ${workers} workers` : ''}`,
      about: [
        `${count(messages)} messages to ${count(lanes)} lanes, each answered and sent once, in order; the last answer came ${count(elapsedMs - durationMs)} ms after the last`,
        'message was due. Messages are due by the clock: those not yet accepted wait as they would at the platform, and count from then.',
        'Memory is that of each process after a garbage collection; “oldest” is the age of the longest-stored waiting message.',
        'Each lane gets one message every 20 s. With fewer lanes the sessions grow faster, and a run reads its entire session (see',
        '“One lane, by the length of its session”).',
      ],
      heads: [
        'after',
        'resident MB',
        'heap MB',
        'Redis MB',
        'WAL MB',
        'database MB',
        'waiting',
        'oldest s',
        '→ model ms',
        '→ sent ms',
        'processor ms/message',
      ],
      rows,
    };
  } finally {
    await Promise.all(processes.map((one) => one.stop()));
    await ground.close();
  }
}

async function figuresOf(ground: Ground, processes: readonly Parley[]): Promise<readonly string[]> {
  const { database } = ground;
  const { accepted, sent, all } = await timesOf(processes, true);
  const [row] = await database.query(
    `select (select count(*) from inbox where ${isOpen}) as rows, (select count(*) from outbox) as sent,
      (select min("createdAt") from inbox where ${isOpen}) as oldest`,
  );
  const usage = await usageOf(ground, processes);
  const spent = usage.parley + usage.database + usage.redis;
  const wal = await database.walBytes();
  const messages = Number(row?.sent);
  const last = lastOf.get(ground);
  lastOf.set(ground, { spent, messages });
  const each = last === undefined ? Number.NaN : (spent - last.spent) / (messages - last.messages);
  return [
    all.map(({ residentMb }) => round(residentMb)).join(' + '),
    all.map(({ heapMb }) => round(heapMb)).join(' + '),
    round(redisMb(ground)),
    wal === undefined ? '–' : round(wal / 2 ** 20),
    count((await database.sizeBytes()) / 2 ** 20),
    String(row?.rows),
    row?.oldest == null ? '–' : round((Date.now() - Number(row.oldest)) / 1000),
    middleAndTail(accepted),
    middleAndTail(sent),
    round(each, 2),
  ];
}

const isOpen = `state in ('held', 'waiting')`;

const lastOf = new WeakMap<Ground, { readonly spent: number; readonly messages: number }>();
