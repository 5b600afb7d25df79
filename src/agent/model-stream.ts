import type { ModelEvent, ModelRequest } from '#contracts/model.ts';
import { noSections } from '#contracts/section.ts';
import { faultText } from './fault-text.ts';
import { watchIdle } from './idle-watch.ts';
import type { AgentLoopConfig } from './loop-config.ts';
import { raceAbort } from './race-abort.ts';
import type { RunScope } from './run-scope.ts';

export type StreamStep =
  | { readonly kind: 'event'; readonly event: ModelEvent }
  /** The run was cut short; its scope knows why. */
  | { readonly kind: 'cut' };

/** A model's stream read step by step, under the run's signal and the idle limit. */
export interface ModelStream {
  /** Never rejects: a stream that throws or just stops ends with an `error` event like any other. */
  next(): Promise<StreamStep>;
  /** Stops the clock and lets go of the stream. Safe to repeat. */
  close(): void;
}

/** Silence that its person hears about, ms: a model that thinks without a word is often quiet for half a minute. */
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
  const idle = watchIdle(
    {
      clock: config.clock,
      idleMs: config.limits.modelIdleMs,
      quietMs,
      onIdle: () => scope.stop('idle'),
      onQuiet: () => config.onQuiet?.(),
    },
    signal,
  );
  let events: AsyncIterator<ModelEvent> | undefined;
  /** A retry's announced wait is not silence. */
  let announcedWaitMs = 0;

  const { sections = noSections } = config;
  const advance = () =>
    sections.run('ask model', () => {
      events ??= config.stream(request, signal)[Symbol.asyncIterator]();
      return events.next();
    });

  const next = async (): Promise<StreamStep> => {
    if (signal.aborted) return { kind: 'cut' };
    idle.listen(announcedWaitMs);
    const step = await raceAbort(advance, signal);
    idle.heard();
    if (step.kind === 'aborted') return { kind: 'cut' };
    if (step.kind === 'failed') return failure(faultText(step.error));
    if (step.value.done === true) return failure('the stream ended before it was complete');
    const event = step.value.value;
    announcedWaitMs = event.type === 'warning' ? event.waitMs : 0;
    return { kind: 'event', event };
  };

  const close = () => {
    scope.signal.removeEventListener('abort', onScopeAbort);
    // A reason of our own: the default one is an error with a stack, made for nobody.
    open.abort('the stream is closed');
    // Not awaited: a stream that ignores its signal would hold the run open. It gets its chance to clean up.
    void letGo(events);
  };
  return { next, close };
}

function failure(detail: string): StreamStep {
  return { kind: 'event', event: { type: 'error', failure: { kind: 'failed', detail } } };
}

async function letGo(events: AsyncIterator<ModelEvent> | undefined): Promise<void> {
  try {
    await events?.return?.();
  } catch {
    // Its answer is already taken or given up; how it closes changes nothing.
  }
}
