import type { Clock } from '#contracts/clock.ts';

/** Measures the silence of a model stream; one timer per silence, not one per chunk. */
export interface IdleWatch {
  /** Starts waiting for the next chunk; `extraMs` is announced silence, such as the wait before a retry. */
  listen(extraMs: number): void;
  /** A chunk arrived: time spent by its reader doesn't count as the model's silence. */
  heard(): void;
}

export type IdleTerms = {
  readonly clock: Clock;
  readonly idleMs: number;
  readonly quietMs: number;
  onIdle(): void;
  onQuiet(): void;
};

/**
 * Calls `onQuiet` once when a wait for a chunk exceeds `quietMs`, and `onIdle` once when one exceeds `idleMs`. Ends
 * with the signal.
 */
export function watchIdle(
  { clock, idleMs, quietMs, onIdle, onQuiet }: IdleTerms,
  signal: AbortSignal,
): IdleWatch {
  let deadline: number | undefined;
  let wasQuiet = false;

  const watch = async () => {
    while (!signal.aborted) {
      const leftMs = deadline === undefined ? idleMs : deadline - clock.now();
      if (leftMs <= 0) return onIdle();
      const untilQuiet = leftMs - idleMs + quietMs;
      if (untilQuiet <= 0 && !wasQuiet) {
        wasQuiet = true;
        onQuiet();
      }
      await clock.wait(wasQuiet ? leftMs : Math.min(leftMs, untilQuiet), signal);
    }
  };
  // Neither `wait` nor the callbacks reject.
  void watch();

  return {
    listen: (extraMs) => {
      deadline = clock.now() + idleMs + extraMs;
    },
    heard: () => {
      deadline = undefined;
    },
  };
}
