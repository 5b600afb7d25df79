import type { Clock } from '#contracts/clock.ts';

/** Why a run was cut short from outside its own flow. */
export type AbortReason = 'aborted' | 'timeout' | 'idle';

/** One signal for everything a run has open, and the first reason it was pulled for. */
export interface RunScope {
  /** Aborts when the run is cut short, and in any case when it ends. */
  readonly signal: AbortSignal;
  abortReason(): AbortReason | undefined;
  stop(reason: AbortReason): void;
  /** Ends the scope: releases the clock and the caller's signal, aborts what still runs. */
  close(): void;
}

/** Joins the caller's signal with the run's time limit (`runTimeoutMs`, on the injected clock). */
export function openRunScope(outer: AbortSignal, clock: Clock, runTimeoutMs: number): RunScope {
  const controller = new AbortController();
  let reason: AbortReason | undefined;
  let isClosed = false;

  const stop = (why: AbortReason) => {
    if (isClosed) return;
    reason ??= why;
    controller.abort();
  };
  const onOuterAbort = () => stop('aborted');
  outer.addEventListener('abort', onOuterAbort, { once: true });
  if (outer.aborted) onOuterAbort();
  // `wait` never rejects and resolves at once when the scope ends, so nothing is left behind.
  void clock.wait(runTimeoutMs, controller.signal).then(() => {
    if (!controller.signal.aborted) stop('timeout');
  });

  return {
    signal: controller.signal,
    abortReason: () => reason,
    stop,
    close: () => {
      isClosed = true;
      outer.removeEventListener('abort', onOuterAbort);
      // A reason of our own: the default one is an error with a stack, made for nobody.
      controller.abort('the run is over');
    },
  };
}
