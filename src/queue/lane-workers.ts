import { WaitingError, Worker } from 'bullmq';
import { z } from 'zod';
import type { Log } from '#contracts/log.ts';
import type { RedisConnections } from '../redis/connection.ts';
import type { QueueName, RedisKeys } from '../redis/keys.ts';
import type { ClaimTerms } from '../store/lanes/claim-due.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { createSlots } from './slots.ts';

/** Works lanes until they rest, are armed for later, or give way. The signal asks it to hand over. */
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
  readonly concurrency: Readonly<Partial<Record<QueueName, number>>>;
  readonly driver: LaneDriver;
};

/** Slots set aside for the lanes that a commit is about to make due. */
export type Reservation = {
  readonly terms: ClaimTerms;
  /** Works what the commit has claimed, and gives the other slots back. Called once, come what may. */
  begin(runs: readonly ClaimedRun[]): void;
};

export interface LaneWorkers {
  /** Undefined when no slot is free: the lanes are then woken through Redis. */
  reserve(name: QueueName, most: number): Reservation | undefined;
  /** Looks at a lane in a slot that is free, without Redis; false when there is none. */
  drive(name: string, laneKey: string): boolean;
  /** Takes no further lane, asks the running ones to hand over, and resolves when they have. */
  close(): Promise<void>;
}

/** A wake job names a lane and nothing else: whoever can write to Redis can only make us look. */
const wakeSchema = z.object({ laneKey: z.string().min(1).max(2048) });

/**
 * The slots of this process, by class of lanes, and who fills them: a commit of this process that made
 * a lane due and found a slot free, or a wake job of BullMQ's. The right to run is the lease in the
 * store, not BullMQ's lock.
 */
export function startLaneWorkers(deps: LaneWorkersDeps): LaneWorkers {
  const { redis, log, concurrency, driver } = deps;
  const stopping = new AbortController();
  const drives = new Set<Promise<void>>();
  const track = (driving: Promise<void>) => {
    drives.add(driving);
    return driving.finally(() => drives.delete(driving));
  };
  const classes = new Map(
    Object.entries(concurrency).map(([name, count]) => [name, { count, slots: createSlots(count) }] as const),
  );
  const workers = [...classes].map(([name, { count, slots }]) =>
    openWorker(deps, { name, count }, async (laneKey, signal) => {
      await slots.take();
      const signals = signal ? [signal, stopping.signal] : [stopping.signal];
      const isStopping = stopping.signal.aborted;
      const driving = isStopping ? Promise.resolve() : driver.drive(laneKey, AbortSignal.any(signals));
      await track(driving).finally(() => slots.release());
      return !isStopping;
    }),
  );
  return {
    reserve: (name, most) => {
      const slots = classes.get(name)?.slots;
      if (!slots || stopping.signal.aborted) return undefined;
      const taken = slots.takeFree(most);
      if (taken === 0) return undefined;
      return {
        terms: { ...driver.termsFor(taken), class: name },
        begin: (runs) => {
          slots.release(taken - runs.length);
          for (const run of runs)
            track(driver.goOn(run, stopping.signal))
              .catch((error: unknown) => log.warn({ lane: run.laneKey, error }, 'lane.failed'))
              .finally(() => slots.release());
        },
      };
    },
    drive: (name, laneKey) => {
      const slots = classes.get(name)?.slots;
      if (!slots || stopping.signal.aborted || slots.takeFree(1) === 0) return false;
      track(driver.drive(laneKey, stopping.signal))
        .catch((error: unknown) => log.warn({ lane: laneKey, error }, 'lane.failed'))
        .finally(() => slots.release());
      return true;
    },
    close: async () => {
      stopping.abort();
      // No further wake is taken from Redis while the runs hand over: another worker has it.
      await Promise.all(workers.map((worker) => worker.pause(true)));
      await Promise.allSettled(drives);
      // A worker wants to tell Redis of its last jobs, and would wait for ever for one that is gone.
      const isForced = !redis.isReady();
      await Promise.all(workers.map((worker) => worker.close(isForced)));
    },
  };
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
  worker.on('error', (error) => log.debug({ queue: name, error }, 'worker.error'));
  worker.on('failed', (job, error) => log.warn({ queue: name, lane: job?.data, error }, 'lane.failed'));
  return worker;
}
