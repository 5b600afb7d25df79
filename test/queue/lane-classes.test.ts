/** Each class of lanes has its own slots and its own BullMQ worker, in every process. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { isLaneClass, type LaneClass } from '../../src/contracts/lane-class.ts';
import { type LaneWorkers, startLaneWorkers } from '../../src/queue/lane-workers.ts';
import { createWakes } from '../../src/queue/wakes.ts';
import { openRedis, redisKeys } from '../../src/redis/connection.ts';
import { startOwnRedis } from '../e2e/redis-faults.ts';
import { demoOnly, unique } from '../store/builders.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

const concurrency = { main: 2, 'sub-1': 3, background: 1 } as const;
const classes = ['main', 'sub-1', 'background'] as const;
const nothingReserved = {
  ...{ holder: 'nobody', leaseMs: 1, maxAttempts: 1, newRunIds: [] },
  framing: { now: '', contextIntro: '', contextOutro: '', overflowIntro: '' },
  models: demoOnly,
};

type WorkerProcess = {
  readonly workers: LaneWorkers;
  /** Lanes being worked now, by class. */
  readonly atWork: Map<string, number>;
  /** The most lanes that were worked at the same time, by class. */
  readonly most: Map<string, number>;
};

async function openRedisForTest() {
  const { socketPath } = await startOwnRedis((end) => onTestFinished(end));
  const keys = redisKeys(unique('classes'));
  const connect = async () => {
    const redis = openRedis({ kind: 'socket', path: socketPath }, silentLog);
    onTestFinished(() => redis.close());
    await redis.ready(AbortSignal.timeout(patienceMs));
    return redis;
  };
  const wakes = createWakes({ redis: await connect(), keys, log: silentLog });
  onTestFinished(wakes.close);
  /** Opens a process. A lane is called `<class>/<number>`; it is worked until `done` resolves. */
  const openProcess = async (
    done: (laneKey: string) => Promise<void>,
    patienceMs?: number,
  ): Promise<WorkerProcess> => {
    const atWork = new Map<string, number>();
    const most = new Map<string, number>();
    const drive = async (laneKey: string) => {
      const name = classOf(laneKey);
      const count = (atWork.get(name) ?? 0) + 1;
      atWork.set(name, count);
      most.set(name, Math.max(count, most.get(name) ?? 0));
      await done(laneKey);
      atWork.set(name, (atWork.get(name) ?? 1) - 1);
    };
    const driver = { drive, continueRun: () => Promise.resolve(), termsFor: () => nothingReserved };
    const redis = await connect();
    const workers = startLaneWorkers({
      ...{ redis, keys, log: silentLog, concurrency, driver },
      ...(patienceMs !== undefined && { patienceMs }),
    });
    onTestFinished(workers.close);
    return { workers, atWork, most };
  };
  const wake = (laneKey: string) => wakes.wake({ laneKey, class: classOf(laneKey), delayMs: 0 });
  return { openProcess, wake };
}

function classOf(laneKey: string): LaneClass {
  const name = laneKey.split('/')[0] ?? '';
  if (!isLaneClass(name)) throw new Error(`test error: ${laneKey} is of no class`);
  return name;
}

function lanesOf(name: LaneClass, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${name}/${index}`);
}

it('runs lanes of one class while another class is at its cap', async () => {
  const { openProcess, wake } = await openRedisForTest();
  const full = Promise.withResolvers<void>();
  const isMainWorked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  let subs = 0;
  const { workers, atWork } = await openProcess(async (laneKey) => {
    if (laneKey.startsWith('main')) return isMainWorked.resolve();
    subs += 1;
    if (subs === concurrency['sub-1']) full.resolve();
    await held.promise;
  });
  onTestFinished(() => held.resolve());
  workers.open('sub-1');
  for (const laneKey of lanesOf('sub-1', 6)) wake(laneKey);
  await full.promise;
  wake('main/0');
  await isMainWorked.promise;
  expect(atWork.get('sub-1')).toBe(concurrency['sub-1']);
  expect(workers.drive('sub-1', 'sub-1/direct')).toBe(false);
  expect(workers.reserve('sub-1', 1)).toBeUndefined();
  const reserved = workers.reserve('main', 5);
  expect(reserved?.terms.class).toBe('main');
  reserved?.begin([]);
});

it('never runs more lanes of a class than configured, in two processes, with and without wakes', async () => {
  const { openProcess, wake } = await openRedisForTest();
  const lanes = classes.flatMap((name) => lanesOf(name, 30));
  const worked = new Set<string>();
  const all = Promise.withResolvers<void>();
  const done = async (laneKey: string) => {
    await new Promise(setImmediate);
    worked.add(laneKey);
    if (worked.size === lanes.length) all.resolve();
  };
  const processes = [await openProcess(done), await openProcess(done)];
  for (const { workers } of processes) for (const name of classes) workers.open(name);
  for (const [index, laneKey] of lanes.entries()) {
    const workers = processes[index % 2]?.workers;
    if (index % 3 > 0 || workers?.drive(classOf(laneKey), laneKey) !== true) wake(laneKey);
  }
  await all.promise;
  for (const { most } of processes)
    for (const name of classes) expect(most.get(name) ?? 0).toBeLessThanOrEqual(concurrency[name]);
});

it("takes wakes of a class from its first lane on, and rejects a class that isn't configured", async () => {
  const { openProcess, wake } = await openRedisForTest();
  const worked = Promise.withResolvers<string>();
  const { workers } = await openProcess(async (laneKey) => worked.resolve(laneKey));
  wake('background/0');
  // The sweep of this process has found a lane of the class, so it now receives the other wakes too.
  workers.open('background');
  expect(await worked.promise).toBe('background/0');
  expect(workers.drive('nonsense', 'nonsense/0')).toBe(false);
});

it('keeps a lane without a slot for the next free one, once, and wakes all processes when its wait is over', async () => {
  const { openProcess } = await openRedisForTest();
  const held = { 'main/0': Promise.withResolvers<void>(), 'main/1': Promise.withResolvers<void>() };
  const seen: string[] = [];
  const done = async (laneKey: string) => {
    seen.push(laneKey);
    await held[laneKey as keyof typeof held]?.promise;
  };
  const patient = await openProcess(done, patienceMs);
  onTestFinished(() => Object.values(held).forEach((each) => void each.resolve()));
  const told: string[] = [];
  const come = ({ workers }: WorkerProcess, ...lanes: readonly string[]) => {
    for (const laneKey of lanes)
      workers.driveSoon({ laneKey, class: 'main', delayMs: 0 }, () => told.push(laneKey));
  };
  come(patient, 'main/0', 'main/1', 'main/2', 'main/3', 'main/2');
  await vi.waitFor(() => expect(seen).toEqual(['main/0', 'main/1']));
  expect(patient.workers.drive('main', 'main/3')).toBe(true);
  expect(patient.workers.drive('main', 'main/4')).toBe(false);
  held['main/0'].resolve();
  await vi.waitFor(() => expect(seen).toEqual(['main/0', 'main/1', 'main/2', 'main/3']));
  // A lane that is woken while it is being worked is worked once more.
  come(patient, 'main/3', 'main/1');
  held['main/1'].resolve();
  await vi.waitFor(() => expect(seen.slice(4)).toEqual(['main/3', 'main/1']));
  expect(told).toEqual([]);

  const full = Promise.withResolvers<void>();
  const hasty = await openProcess(() => full.promise, 1);
  onTestFinished(() => full.resolve());
  come(hasty, 'main/4', 'main/5', 'main/6');
  await vi.waitFor(() => expect(told).toEqual(['main/6']));
  full.resolve();
  come(await openProcess(done, 0), 'main/7');
  expect(told).toEqual(['main/6', 'main/7']);
});
