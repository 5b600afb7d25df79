import { Worker } from 'bullmq';
import { z } from 'zod';
import type { Log } from '#contracts/log.ts';
import type { RedisConnections } from '../redis/connection.ts';
import type { QueueName, RedisKeys } from '../redis/keys.ts';

/** Works a lane until it rests, is armed for later, or gives way. The signal asks it to hand over. */
export type DriveLane = (laneKey: string, signal: AbortSignal) => Promise<void>;

export type LaneWorkersDeps = {
  readonly redis: RedisConnections;
  readonly keys: RedisKeys;
  readonly log: Log;
  readonly concurrency: Readonly<Partial<Record<QueueName, number>>>;
  readonly drive: DriveLane;
};

export interface LaneWorkers {
  /** Takes no further lane, asks the running ones to hand over, and resolves when they have. */
  close(): Promise<void>;
}

/** A wake job names a lane and nothing else: whoever can write to Redis can only make us look. */
const wakeSchema = z.object({ laneKey: z.string().min(1).max(2048) });

/** One BullMQ worker per class of lanes. The right to run is the lease in the store, not BullMQ's lock. */
export function startLaneWorkers(deps: LaneWorkersDeps): LaneWorkers {
  const { redis, keys, log, concurrency, drive } = deps;
  const stopping = new AbortController();
  const drives = new Set<Promise<void>>();
  const track = (driving: Promise<void>) => {
    drives.add(driving);
    return driving.finally(() => drives.delete(driving));
  };
  const workers = Object.entries(concurrency).map(([name, slots]) => {
    const worker = new Worker(
      name,
      // Three parameters: BullMQ passes the signal only to a processor that declares it.
      async (job, _token, signal) => {
        const wake = wakeSchema.safeParse(job.data);
        if (!wake.success) return log.warn({ queue: name }, 'wake.malformed');
        const signals = signal ? [signal, stopping.signal] : [stopping.signal];
        await track(drive(wake.data.laneKey, AbortSignal.any(signals)));
      },
      {
        connection: redis.blocking,
        prefix: keys.prefix,
        concurrency: slots,
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
  });
  return {
    close: async () => {
      stopping.abort();
      await Promise.allSettled(drives);
      // A worker wants to tell Redis of its last jobs, and would wait for ever for one that is gone.
      const isForced = !redis.isReady();
      await Promise.all(workers.map((worker) => worker.close(isForced)));
    },
  };
}
