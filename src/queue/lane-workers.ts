import { WaitingError, Worker } from 'bullmq';
import { z } from 'zod';
import type { LaneClass } from '#contracts/lane-class.ts';
import type { Log } from '#contracts/log.ts';
import type { RedisConnections } from '../redis/connection.ts';
import type { RedisKeys } from '../redis/keys.ts';
import type { ClaimTerms } from '../store/lanes/claim-due.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { createSlots, type Slots } from './slots.ts';
import type { Wake } from './wakes.ts';

/** Works lanes until they are idle, armed for later, or yield to others. The signal asks it to hand over. */
export interface LaneDriver {
  /** Looks at a lane that was woken. */
  drive(laneKey: string, signal: AbortSignal): Promise<void>;
  /** Goes on from a run that was claimed by the commit that made the lane due. */
  goOn(run: ClaimedRun, signal: AbortSignal): Promise<void>;
  /** On which terms a commit may claim so many lanes for this process. */
  termsFor(count: number): Omit<ClaimTerms, 'class'>;
}

export type LaneWorkersDeps = {
  readonly redis: RedisConnections;
  readonly keys: RedisKeys;
  readonly log: Log;
  /** Lanes of each class that this process works at once. */
  readonly concurrency: Readonly<Partial<Record<LaneClass, number>>>;
  readonly driver: LaneDriver;
  /** How long a lane waits for a slot of this process before it is woken through Redis, ms. 0: not at all. */
  readonly patienceMs?: number;
};

/** Patience of a process that is the only one: a burst is over by then. What waits for longer waits in Redis. */
export const alonePatienceMs = 1_000;

/** Slots set aside for the lanes that a commit is about to make due. */
export type Reservation = {
  readonly terms: ClaimTerms;
  /** Works what the commit has claimed, and gives the other slots back. Called once, come what may. */
  begin(runs: readonly ClaimedRun[]): void;
};

/** Claims due lanes, at most as many at once as there are slots. */
export interface LaneWorkers {
  /** Undefined when no slot of the class is free: the lanes are then woken through Redis. */
  reserve(name: string, most: number): Reservation | undefined;
  /** Looks at a lane in a free slot of its class, without Redis; false when there is none, unless the lane waits for the next. */
  drive(name: string, laneKey: string): boolean;
  /**
   * Looks at a due lane as soon as a slot of its class is free here, without Redis; calls `tellAll` when that takes longer
   * than this process is patient, and at once for a lane that is due later. A lane in the line is not added again: the
   * one look finds everything that waits.
   */
  driveSoon(wake: Wake, tellAll: () => void): void;
  /** Takes wakes of the class from Redis from now on; the first lane of a class calls it. Safe to repeat. */
  open(name: string): void;
  /** Takes no further lane, asks the running ones to hand over, and resolves when they have. */
  close(): Promise<void>;
}

/** A wake job names a lane and nothing else: a Redis client can only trigger a read. */
const wakeSchema = z.object({ laneKey: z.string().min(1).max(2048) });

/**
 * The slots of this process, by class of lanes, and who fills them: a commit of this process that made
 * a lane due and found a slot free, or a wake job of BullMQ's. The right to run is the lease in the
 * store, not BullMQ's lock. A process that is the only one keeps a due lane for its own next slot at first.
 * People's lanes are there from the start; another class has its BullMQ worker, which costs two connections to
 * Redis, from its first lane on.
 */
export function startLaneWorkers(deps: LaneWorkersDeps): LaneWorkers {
  const { redis, log, driver, patienceMs = 0 } = deps;
  const stopping = new AbortController();
  const drives = new Set<Promise<void>>();
  const track = (driving: Promise<void>) => {
    drives.add(driving);
    return driving.finally(() => drives.delete(driving));
  };
  const { open, workers } = createClasses(deps, { stopping: stopping.signal, track });
  open('main');
  const begin = (slots: Slots, laneKey: string, driving: Promise<void>) =>
    void track(driving)
      .catch((error: unknown) => log.warn({ lane: laneKey, error }, 'lane.failed'))
      .finally(() => slots.release());
  const line = createLine({ patienceMs, stopping: stopping.signal }, (slots, laneKey) =>
    begin(slots, laneKey, driver.drive(laneKey, stopping.signal)),
  );
  return {
    driveSoon: (wake, tellAll) => line.add(open(wake.class), wake, tellAll),
    reserve: (name, most) => {
      const slots = open(name);
      const taken = slots?.takeFree(most) ?? 0;
      if (!slots || taken === 0) return undefined;
      return {
        terms: { ...driver.termsFor(taken), class: name },
        begin: (runs) => {
          slots.release(taken - runs.length);
          for (const run of runs) begin(slots, run.laneKey, driver.goOn(run, stopping.signal));
        },
      };
    },
    drive: (name, laneKey) => {
      if (line.has(laneKey)) return true;
      const slots = open(name);
      if (!slots || slots.takeFree(1) === 0) return false;
      begin(slots, laneKey, driver.drive(laneKey, stopping.signal));
      return true;
    },
    open: (name) => void open(name),
    close: async () => {
      stopping.abort();
      const opened = [...workers.values()];
      // No further wake is taken from Redis while the runs hand over: another worker has it.
      await Promise.all(opened.map((worker) => worker.pause(true)));
      await Promise.allSettled(drives);
      // A worker wants to tell Redis of its last jobs, and would wait for ever for one that is gone.
      const isForced = !redis.isReady();
      await Promise.all(opened.map((worker) => worker.close(isForced)));
    },
  };
}

/** The lanes that wait for a slot of this process. `begin` is given the slot with the lane, and gives it back. */
function createLine(
  { patienceMs, stopping }: { readonly patienceMs: number; readonly stopping: AbortSignal },
  begin: (slots: Slots, laneKey: string) => void,
) {
  const waiting = new Set<string>();
  return {
    has: (laneKey: string) => waiting.has(laneKey),
    add: (slots: Slots | undefined, { laneKey, delayMs }: Wake, tellAll: () => void) => {
      if (!slots || delayMs > 0 || patienceMs === 0) return tellAll();
      if (waiting.has(laneKey)) return;
      waiting.add(laneKey);
      void slots.takeWithin(patienceMs).then((isTaken) => {
        waiting.delete(laneKey);
        if (!isTaken) return tellAll();
        if (stopping.aborted) return slots.release();
        begin(slots, laneKey);
      });
    },
  };
}

type WorkScene = {
  readonly stopping: AbortSignal;
  track(driving: Promise<void>): Promise<void>;
};

/** Undefined for a class that the configuration does not have, and once the process stops. */
type OpenClass = (name: string) => Slots | undefined;

function createClasses(
  deps: LaneWorkersDeps,
  { stopping, track }: WorkScene,
): { readonly open: OpenClass; readonly workers: ReadonlyMap<string, Worker> } {
  const workers = new Map<string, Worker>();
  const classes = new Map(
    Object.entries(deps.concurrency).map(([name, count]) => [name, { count, slots: createSlots(count) }]),
  );
  const open: OpenClass = (name) => {
    const known = classes.get(name);
    if (!known || stopping.aborted) return undefined;
    const { count, slots } = known;
    if (workers.has(name)) return slots;
    const worker = openWorker(deps, { name, count }, async (laneKey, signal) => {
      await slots.take();
      const signals = signal ? [signal, stopping] : [stopping];
      const isStopping = stopping.aborted;
      const driving = isStopping ? Promise.resolve() : deps.driver.drive(laneKey, AbortSignal.any(signals));
      await track(driving).finally(() => slots.release());
      return !isStopping;
    });
    workers.set(name, worker);
    return slots;
  };
  return { open, workers };
}

function openWorker(
  { redis, keys, log }: LaneWorkersDeps,
  { name, count }: { readonly name: string; readonly count: number },
  /** False when this process takes no more lanes. */
  work: (laneKey: string, signal: AbortSignal | undefined) => Promise<boolean>,
): Worker {
  const worker = new Worker(
    name,
    // Three parameters: BullMQ passes the signal only to a processor that declares it.
    async (job, token, signal) => {
      const wake = wakeSchema.safeParse(job.data);
      if (!wake.success) return log.warn({ queue: name }, 'wake.malformed');
      if (await work(wake.data.laneKey, signal)) return;
      // Another worker has it at once.
      await job.moveToWait(token);
      throw new WaitingError();
    },
    {
      connection: redis.blocking,
      prefix: keys.prefix,
      concurrency: count,
      // With the scan, the longest that a killed process keeps its lanes from being woken.
      lockDuration: 5_000,
      stalledInterval: 2_000,
      // The scanner's setting decides; crashes per run are counted in the store.
      maxStalledCount: 1_000_000,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    },
  );
  worker.on('error', (error) => log.debug({ queue: name, error }, 'worker.failed'));
  worker.on('failed', (job, error) => log.warn({ queue: name, lane: job?.data, error }, 'lane.failed'));
  return worker;
}
