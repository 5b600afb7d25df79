import type { Clock } from '#contracts/clock.ts';

/** Measures the silence of a model stream; one timer per silence, not one per chunk. */
export interface IdleWatch {
  /** Begins waiting for the next chunk; `extraMs` is silence that was announced, a retry's wait say. */
  listen(extraMs: number): void;
  /** A chunk came: time its reader takes is not the model's silence. */
  heard(): void;
}

/** Calls `onIdle` once when a wait for a chunk lasts longer than `idleMs`. Ends with the signal. */
export function watchIdle(
  options: { readonly clock: Clock; readonly idleMs: number; readonly onIdle: () => void },
  signal: AbortSignal,
): IdleWatch {
  const { clock, idleMs, onIdle } = options;
  let deadline: number | undefined;

  const watch = async () => {
    while (!signal.aborted) {
      const leftMs = deadline === undefined ? idleMs : deadline - clock.now();
      if (leftMs <= 0) return onIdle();
      await clock.wait(leftMs, signal);
    }
  };
  // Neither `wait` nor `onIdle` rejects.
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
