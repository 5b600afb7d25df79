import { WaitingError, Worker } from 'bullmq';
import { z } from 'zod';
import type { LaneClass } from '#contracts/lane-class.ts';
import type { Log } from '#contracts/log.ts';
import type { RedisConnections, RedisKeys } from '../redis/connection.ts';
import type { ClaimTerms } from '../store/lanes/claim-due.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { Wake } from './wakes.ts';

/** Works lanes until they are idle, armed for later, or yield to others. Its signals ask it to hand over. */
export interface LaneDriver {
  /** Works a lane that was woken. */
  drive(laneKey: string, signal: AbortSignal): Promise<void>;
  /** Continues with a run claimed by the commit that made the lane due. */
  continueRun(run: ClaimedRun, signal: AbortSignal): Promise<void>;
  /** Returns the terms on which a commit may claim this many lanes for this process. */
  termsFor(count: number): Omit<ClaimTerms, 'class'>;
}

export type LaneWorkersDeps = {
  readonly redis: RedisConnections;
  readonly keys: RedisKeys;
  readonly log: Log;
  /** How many lanes of each class this process works at once. */
  readonly concurrency: Readonly<Partial<Record<LaneClass, number>>>;
  readonly driver: LaneDriver;
  /**
   * How long a lane waits for a slot of this process before it is woken through Redis, ms. 0: not at all, since other
   * processes work lanes too.
   */
  readonly patienceMs?: number;
};

/** Patience of the only process, ms: a burst is over by then. Lanes that wait longer wait in Redis. */
export const alonePatienceMs = 1_000;

/** Slots set aside for the lanes that a commit is about to make due. */
export type Reservation = {
  readonly terms: ClaimTerms;
  /** Works the runs that the commit has claimed and releases the other slots. Call it once, whatever happens. */
  begin(runs: readonly ClaimedRun[]): void;
};

/** Claims due lanes, at most one per slot at a time. */
export interface LaneWorkers {
  /** Reserves free slots; undefined if the class has none, in which case the lanes are woken through Redis. */
  reserve(name: string, most: number): Reservation | undefined;
  /**
   * Works a lane in a free slot of its class, without Redis. False if there is none and the lane isn't waiting for one.
   */
  drive(name: string, laneKey: string): boolean;
  /**
   * Works a due lane as soon as a slot of its class is free here, without Redis. Calls `wakeOthers` if that exceeds this
   * process's patience, and immediately for a lane that is due later. A lane already in line isn't added again: it will
   * find everything that waits when its turn comes.
   */
  driveSoon(wake: Wake, wakeOthers: () => void): void;
  /** Starts taking wakes of the class from Redis; called for the first lane of a class. Safe to repeat. */
  open(name: string): void;
  /** Takes no further lanes, asks the running ones to hand over, and resolves when they have. */
  close(): Promise<void>;
}

/** A wake job names a lane and nothing else: a Redis client can only trigger a read. */
const wakeSchema = z.object({ laneKey: z.string().min(1).max(2048) });

/**
 * The slots of this process, by lane class. A slot is filled by a commit of this process that made a lane due and found
 * the slot free, or by a BullMQ wake job. The right to run is the lease in the store, not BullMQ's lock. If there is
 * only one process, it first keeps a due lane for its own next slot. People's lanes are open from the start; any other
 * class gets its BullMQ worker, which costs two Redis connections, with its first lane.
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
    driveSoon: (wake, wakeOthers) => line.add(open(wake.class), wake, wakeOthers),
    reserve: (name, most) => {
      const slots = open(name);
      const taken = slots?.takeFree(most) ?? 0;
      if (!slots || taken === 0) return undefined;
      return {
        terms: { ...driver.termsFor(taken), class: name },
        begin: (runs) => {
          slots.release(taken - runs.length);
          for (const run of runs) begin(slots, run.laneKey, driver.continueRun(run, stopping.signal));
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
      // While the runs hand over, no further wakes are taken from Redis; other workers get them.
      await Promise.all(opened.map((worker) => worker.pause(true)));
      await Promise.allSettled(drives);
      // A worker reports its last jobs to Redis, and would wait forever if Redis is gone.
      const isForced = !redis.isReady();
      await Promise.all(opened.map((worker) => worker.close(isForced)));
    },
  };
}

/**
 * Creates the line of lanes that wait for a slot of this process. `begin` receives the slot with the lane and releases
 * it.
 */
function createLine(
  { patienceMs, stopping }: { readonly patienceMs: number; readonly stopping: AbortSignal },
  begin: (slots: Slots, laneKey: string) => void,
) {
  const waiting = new Set<string>();
  return {
    has: (laneKey: string) => waiting.has(laneKey),
    add: (slots: Slots | undefined, { laneKey, delayMs }: Wake, wakeOthers: () => void) => {
      if (!slots || delayMs > 0 || patienceMs === 0) return wakeOthers();
      if (waiting.has(laneKey)) return;
      waiting.add(laneKey);
      void slots.takeWithin(patienceMs).then((isTaken) => {
        waiting.delete(laneKey);
        if (!isTaken) return wakeOthers();
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

/** Returns the slots of a class; undefined for a class not in the configuration, and once the process is stopping. */
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
  { redis, keys, log, patienceMs = 0 }: LaneWorkersDeps,
  { name, count }: { readonly name: string; readonly count: number },
  /** Returns false if this process takes no more lanes. */
  work: (laneKey: string, signal: AbortSignal | undefined) => Promise<boolean>,
): Worker {
  const worker = new Worker(
    name,
    // Three parameters: BullMQ passes the signal only to a processor that declares it.
    async (job, token, signal) => {
      const wake = wakeSchema.safeParse(job.data);
      if (!wake.success) return log.warn({ queue: name }, 'wake.malformed');
      if (await work(wake.data.laneKey, signal)) return;
      // Another worker gets it immediately.
      await job.moveToWait(token);
      throw new WaitingError();
    },
    {
      connection: redis.blocking,
      prefix: keys.prefix,
      concurrency: count,
      // Together with the scan, the longest time that a killed process keeps its lanes from being woken. It only matters
      // if another process could work them.
      ...(patienceMs === 0
        ? { lockDuration: 5_000, stalledInterval: 2_000 }
        : { lockDuration: 60_000, stalledInterval: 60_000, drainDelay: 10 }),
      // Never fail a job for stalling: the store counts the crashes of each run.
      maxStalledCount: 1_000_000,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    },
  );
  worker.on('error', (error) => log.debug({ queue: name, error }, 'worker.failed'));
  worker.on('failed', (job, error) => log.warn({ queue: name, lane: job?.data, error }, 'lane.failed'));
  return worker;
}

/** Limits how many lanes a process works at once. Waiting callers are served first, in order of arrival. */
interface Slots {
  /** Takes the slots that are free now, at most `most`, and returns how many. */
  takeFree(most: number): number;
  /** Waits for a slot. */
  take(): Promise<void>;
  /** Waits for a slot, but at most this long, ms; resolves with false if none was free by then. */
  takeWithin(ms: number): Promise<boolean>;
  release(count?: number): void;
}

export function createSlots(count: number): Slots {
  let free = count;
  /** Waiting callers in order of arrival; empty while a slot is free. */
  const waiting = new Set<() => void>();
  const takeFree = (most: number) => {
    const taken = Math.min(most, free);
    free -= taken;
    return taken;
  };
  return {
    takeFree,
    take: async () => {
      if (takeFree(1) === 0) await new Promise<void>((resolve) => waiting.add(resolve));
    },
    takeWithin: async (ms) => {
      if (takeFree(1) === 1) return true;
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const begin = () => resolve(true);
      waiting.add(begin);
      const timer = setTimeout(() => resolve(!waiting.delete(begin)), ms).unref();
      return promise.finally(() => clearTimeout(timer));
    },
    release: (released = 1) => {
      free += released;
      for (const begin of waiting) {
        if (takeFree(1) === 0) return;
        waiting.delete(begin);
        begin();
      }
    },
  };
}
