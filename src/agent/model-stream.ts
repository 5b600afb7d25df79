import type { Clock } from '#contracts/clock.ts';
import type { ModelEvent, ModelRequest } from '#contracts/model.ts';
import { faultText } from './fault-text.ts';
import type { AgentLoopConfig } from './loop-config.ts';
import { type RaceResult, raceAbort } from './race-abort.ts';
import type { RunScope } from './run-scope.ts';

export type StreamStep =
  | { readonly kind: 'event'; readonly event: ModelEvent }
  /** A message may have arrived for the run; the next step waits for the same event. */
  | { readonly kind: 'arrival' }
  /** The run was cut short; its scope knows why. */
  | { readonly kind: 'cut' };

/** A model's stream, read step by step under the run's signal and the idle limit. */
export interface ModelStream {
  /** Never rejects: a stream that throws or just stops ends with an `error` event like any other. */
  next(): Promise<StreamStep>;
  /** Like `next`, but doesn't sleep through an arrival. */
  nextOrArrival(): Promise<StreamStep>;
  /** Stops the clock and releases the stream. Safe to repeat. */
  close(): void;
}

/** Silence worth telling the person about, ms: a thinking model is often quiet for half a minute. */
const quietMs = 60_000;

export function openModelStream(
  request: ModelRequest,
  { config, scope }: { readonly config: AgentLoopConfig; readonly scope: RunScope },
): ModelStream {
  const open = new AbortController();
  const { signal } = open;
  const onScopeAbort = () => open.abort(scope.signal.reason);
  scope.signal.addEventListener('abort', onScopeAbort, { once: true });
  if (scope.signal.aborted) onScopeAbort();
  const { clock, onQuiet } = config;
  const { modelIdleMs: idleMs } = config.limits;
  const onIdle = () => scope.stop('idle');
  const idle = watchIdle({ clock, idleMs, quietMs, onIdle, onQuiet: () => onQuiet?.() }, signal);
  let events: AsyncIterator<ModelEvent> | undefined;
  /** The announced wait before a retry doesn't count as silence. */
  let announcedWaitMs = 0;

  const openWith = (apiKey?: string) => {
    signal.throwIfAborted();
    events = config.stream(request, signal, apiKey)[Symbol.asyncIterator]();
    return events.next();
  };
  const advance = async () => {
    if (events !== undefined) return events.next();
    return config.getApiKey ? openWith(await config.getApiKey()) : openWith();
  };

  let step: Promise<RaceResult<IteratorResult<ModelEvent>>> | undefined;
  const pending = () => {
    if (step === undefined) idle.listen(announcedWaitMs);
    step ??= raceAbort(advance, signal);
    return step;
  };
  const arrivals = listenFor(config.onArrival);

  const nextOrArrival = async (): Promise<StreamStep> => {
    if (signal.aborted) return { kind: 'cut' };
    await Promise.race([pending(), arrivals.next()]);
    return arrivals.take() ? { kind: 'arrival' } : await next();
  };

  const next = async (): Promise<StreamStep> => {
    if (signal.aborted) return { kind: 'cut' };
    const settled = await pending();
    step = undefined;
    idle.heard();
    const found = stepOf(settled);
    const event = found.kind === 'event' ? found.event : undefined;
    announcedWaitMs = event?.type === 'warning' ? event.waitMs : 0;
    return found;
  };

  const close = () => {
    scope.signal.removeEventListener('abort', onScopeAbort);
    arrivals.close();
    // An explicit reason, because the default is an error whose stack nobody would read.
    open.abort('the stream is closed');
    // Not awaited: it lets the stream clean up, but a stream that ignores its signal would keep the run open.
    void closeQuietly(events);
  };
  return { next, nextOrArrival, close };
}

function stepOf(settled: RaceResult<IteratorResult<ModelEvent>>): StreamStep {
  if (settled.kind === 'aborted') return { kind: 'cut' };
  if (settled.kind === 'failed') return failure(faultText(settled.error));
  if (settled.value.done === true) return failure('the stream ended before it was complete');
  return { kind: 'event', event: settled.value.value };
}

/** Remembers an arrival until it is taken. */
function listenFor(onArrival: AgentLoopConfig['onArrival']) {
  let hasArrived = false;
  let tell: (() => void) | undefined;
  const close = onArrival?.(() => {
    hasArrived = true;
    tell?.();
  });
  return {
    next: async (): Promise<void> => {
      if (hasArrived) return;
      await new Promise<void>((resolve) => {
        tell = resolve;
      });
    },
    take: () => {
      const isTaken = hasArrived;
      hasArrived = false;
      return isTaken;
    },
    close: () => close?.(),
  };
}

function failure(detail: string): StreamStep {
  return { kind: 'event', event: { type: 'error', failure: { kind: 'failed', detail } } };
}

async function closeQuietly(events: AsyncIterator<ModelEvent> | undefined): Promise<void> {
  try {
    await events?.return?.();
  } catch {
    // Its answer has already been taken or abandoned, so how it closes doesn't matter.
  }
}

/** Measures the silence of a model stream; one timer per silence, not one per chunk. */
interface IdleWatch {
  /** Starts waiting for the next chunk; `extraMs` is announced silence, such as the wait before a retry. */
  listen(extraMs: number): void;
  /** A chunk arrived: time spent by its reader doesn't count as the model's silence. */
  heard(): void;
}

type IdleTerms = {
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
function watchIdle({ clock, idleMs, quietMs, onIdle, onQuiet }: IdleTerms, signal: AbortSignal): IdleWatch {
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
