import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../clock.ts';
import { residentMb } from '../process-figures.ts';
import { count, round, type Sheet } from '../sheet.ts';
import { type Ground, type Parley, prepareGround, startProcess } from './farm.ts';
import { readPattern, seedLanes } from './seed.ts';
import { offer } from './throughput.ts';

const lookMs = 100;

export type RestartPace = {
  /** Waiting rows, one in each lane. */
  readonly waiting: readonly number[];
  /** The process is stopped after this long, drained or not, ms. */
  readonly longestMs: number;
};

/** Measures a start with rows waiting: until its first model call, and until nothing waits. */
export async function measureRestart(
  kind: Ground['kind'],
  postgres: string | undefined,
  { waiting, longestMs }: RestartPace,
): Promise<Sheet> {
  const rows: (readonly string[])[] = [];
  for (const rowsWaiting of waiting) rows.push(await oneRestart(kind, postgres, { rowsWaiting, longestMs }));
  return {
    title: `${kind}: a restart with rows waiting`,
    about: [
      'One row waits in each lane, left by a process that was killed. Times count from the start of the Node.js process.',
      `Each start is observed for at most ${longestMs / 1000} s.`,
    ],
    heads: [
      'waiting',
      'ready ms',
      'first model call ms',
      'drained',
      'drained in s',
      'messages/s',
      'peak memory MB',
      'longest pause ms',
    ],
    rows,
  };
}

async function oneRestart(
  kind: Ground['kind'],
  postgres: string | undefined,
  { rowsWaiting, longestMs }: { readonly rowsWaiting: number; readonly longestMs: number },
): Promise<readonly string[]> {
  const ground = await prepareGround(kind, postgres);
  const processes: Parley[] = [];
  try {
    await leaveWaiting(ground, rowsWaiting);
    const parley = await startProcess({ ground });
    processes.push(parley);
    const ready = await parley.next('ready', 60_000);
    const first = await parley.next('first-model-call', 60_000);
    let most = 0;
    let left = rowsWaiting;
    const until = now() + longestMs;
    while (left > 0 && now() < until) {
      await sleep(lookMs);
      most = Math.max(most, residentMb(parley.pid));
      left = await countWaiting(ground);
    }
    const seconds = (now() - first.at) / 1000;
    const { longestPauseMs } = await parley.figures();
    return [
      count(rowsWaiting),
      count(ready.at - parley.startedAt),
      count(first.at - parley.startedAt),
      count(rowsWaiting - left),
      round(seconds),
      count((rowsWaiting - left) / seconds),
      count(most),
      count(longestPauseMs),
    ];
  } finally {
    await Promise.all(processes.map((one) => one.kill()));
    await ground.close();
  }
}

/** Leaves one row waiting in lane 0 of a killed process, and copies it for the other lanes. */
async function leaveWaiting(ground: Ground, rows: number): Promise<void> {
  const parley = await startProcess({ ground, role: 'gateway' });
  await parley.next('receiving');
  await parley.next('ready');
  await offer(parley, { lanes: 1, isHot: false, durationMs: 1, inHand: 1, isOnlyStored: true });
  await parley.kill();
  await seedLanes(ground.database, await readPattern(ground.database), { from: 1, to: rows });
  const waiting = await countWaiting(ground);
  if (waiting !== rows) throw new Error(`${waiting} rows wait instead of ${rows}`);
}

async function countWaiting({ database }: Ground): Promise<number> {
  const [row] = await database.query(
    `select count(*) as rows from inbox where state in ('held', 'waiting') and state = 'waiting'`,
  );
  return Number(row?.rows ?? 0);
}
