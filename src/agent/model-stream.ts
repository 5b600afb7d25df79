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

/** A model's stream, read step by step under the run's signal and the idle limit. */
export interface ModelStream {
  /** Never rejects: a stream that throws or just stops ends with an `error` event like any other. */
  next(): Promise<StreamStep>;
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
  /** The announced wait before a retry doesn't count as silence. */
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
    // An explicit reason, because the default is an error whose stack nobody would read.
    open.abort('the stream is closed');
    // Not awaited: it lets the stream clean up, but a stream that ignores its signal would keep the run open.
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
    // Its answer has already been taken or abandoned, so how it closes doesn't matter.
  }
}
