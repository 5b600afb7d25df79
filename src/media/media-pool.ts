/**
 * Runs libraries that read people's files, each job in a thread of its own: decoding holds up nothing else, can be
 * stopped at any moment, and what a hostile file makes a library keep is gone afterwards.
 */
import { Worker } from 'node:worker_threads';
import type { MediaJob, MediaResult } from './media-thread.ts';

/** Runs a job when it is its turn. Never throws: a job that exceeds a limit, or is aborted, is `heavy`. */
export type RunMediaJob = (job: MediaJob, signal: AbortSignal) => Promise<MediaResult>;

const maxHeapMb = 192;
/** How much the process may grow during a job: images and inflated bytes aren't part of a heap. */
const maxGrowthBytes = { image: 256 * 1024 * 1024, pdf: 56 * 1024 * 1024, office: 56 * 1024 * 1024 } as const;
const memoryCheckMs = 5;
const maxMs = { image: 10_000, pdf: 5_000, office: 5_000 } as const;

const tooHeavy: MediaResult = { kind: 'problem', problem: 'heavy' };

/** Creates the pool: one thread at a time, so that two hostile files can't take twice the memory. */
export function createMediaPool(): RunMediaJob {
  let last: Promise<unknown> = Promise.resolve();
  return (job, signal) => {
    const result = last.then(() => (signal.aborted ? tooHeavy : runThread(job, signal)));
    last = result.catch(() => undefined);
    return result;
  };
}

async function runThread(job: MediaJob, signal: AbortSignal): Promise<MediaResult> {
  const thread = new Worker(new URL('./media-thread.ts', import.meta.url), {
    workerData: job,
    env: {},
    resourceLimits: { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: maxHeapMb },
  });
  const { promise, resolve } = Promise.withResolvers<MediaResult>();
  const giveUp = () => resolve(tooHeavy);
  thread.on('message', resolve);
  thread.on('error', giveUp);
  thread.on('exit', giveUp);
  const until = AbortSignal.any([signal, AbortSignal.timeout(maxMs[job.kind])]);
  until.addEventListener('abort', giveUp, { once: true });
  const atStart = process.memoryUsage.rss();
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() - atStart > maxGrowthBytes[job.kind]) giveUp();
  }, memoryCheckMs);
  try {
    return await promise;
  } finally {
    clearInterval(watch);
    until.removeEventListener('abort', giveUp);
    await thread.terminate();
  }
}
