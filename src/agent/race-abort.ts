import type { Clock } from '#contracts/clock.ts';

/** The outcome of work that was raced against a signal. */
export type RaceResult<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'aborted' };

/**
 * Waits for `work` or the signal, whichever comes first. Never rejects; work that throws synchronously counts as
 * failed. An abort only stops the waiting: the work itself continues unless it listens to the signal, and its late
 * outcome is dropped.
 */
export function raceAbort<T>(work: () => Promise<T>, signal: AbortSignal): Promise<RaceResult<T>> {
  return settleStarted(start(work), signal);
}

/** Like `raceAbort`, but after an abort the work has another `graceMs` to end on its own. */
export async function settleWithGrace<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  grace: { readonly clock: Clock; readonly graceMs: number },
): Promise<RaceResult<T>> {
  const started = start(work);
  const settled = await settleStarted(started, signal);
  if (settled.kind !== 'aborted') return settled;

  const over = new AbortController();
  const timer = grace.clock.wait(grace.graceMs, over.signal).then(() => over.abort());
  const late = await settleStarted(started, over.signal);
  over.abort();
  await timer;
  return late;
}

/** Thrown when the run's signal ended a wait; the run's scope knows why. */
export class AbortedError extends Error {
  constructor() {
    super('the run was ended');
    this.name = 'AbortedError';
  }
}

/** Like `raceAbort`, for steps whose failure ends the run: throws the work's error, or `AbortedError`. */
export async function awaitOrAbort<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const settled = await raceAbort(work, signal);
  if (settled.kind === 'done') return settled.value;
  throw settled.kind === 'failed' ? settled.error : new AbortedError();
}

async function start<T>(work: () => Promise<T>): Promise<T> {
  return await work();
}

function settleStarted<T>(work: Promise<T>, signal: AbortSignal): Promise<RaceResult<T>> {
  return new Promise((resolve) => {
    const finish = (settled: RaceResult<T>) => {
      signal.removeEventListener('abort', onAbort);
      resolve(settled);
    };
    const onAbort = () => finish({ kind: 'aborted' });
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(
      (value) => finish({ kind: 'done', value }),
      (error: unknown) => finish({ kind: 'failed', error }),
    );
    if (signal.aborted) onAbort();
  });
}
