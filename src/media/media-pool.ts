/**
 * Runs libraries that read people's files, each job in a thread of its own: decoding holds up nothing else, can be
 * stopped at any moment, and what a hostile file makes a library keep is gone afterwards.
 */
import { Worker } from 'node:worker_threads';
import type { MediaJob, MediaResult } from './media-thread.ts';

/** Runs a job when it is its turn. Never throws: a job that exceeds a limit, or is aborted, is `heavy`. */
export type RunMediaJob = (job: MediaJob, signal: AbortSignal) => Promise<MediaResult>;

const maxThreads = 2;
const maxHeapMb = 192;
/** How much the process may grow during a job: images and inflated bytes aren't part of a heap. */
const maxGrowthBytes = 256 * 1024 * 1024;
const memoryCheckMs = 25;
const maxMs = 10_000;

const tooHeavy: MediaResult = { kind: 'problem', problem: 'heavy' };

/** Creates the pool. */
export function createMediaPool(): RunMediaJob {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (job, signal) => {
    while (running >= maxThreads) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
    try {
      return signal.aborted ? tooHeavy : await runThread(job, signal);
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
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
  const until = AbortSignal.any([signal, AbortSignal.timeout(maxMs)]);
  until.addEventListener('abort', giveUp, { once: true });
  const atStart = process.memoryUsage.rss();
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() - atStart > maxGrowthBytes) giveUp();
  }, memoryCheckMs);
  try {
    return await promise;
  } finally {
    clearInterval(watch);
    until.removeEventListener('abort', giveUp);
    await thread.terminate();
  }
}
