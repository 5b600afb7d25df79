/**
 * Who is asked next when a model call fails before its first token. In this order: the same model again (8
 * tries; 3 if another model follows), then the fallback models. Nothing is tried again after an abort, an
 * overflow or a refusal, nor once the person may have seen a token. A repeated try sends the very same
 * stateless request, so the person's message is never doubled.
 */
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type {
  LlmProvider,
  ModelAnswer,
  ModelEvent,
  ModelFailure,
  ModelRequest,
  OnWait,
} from '#contracts/model.ts';
import { failureOfError } from './model-failure.ts';
import { createProviderWaits, type ProviderWaits } from './provider-waits.ts';

export type RetryOptions = {
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  /** Shared by all that call the same provider; default: this one's own. */
  readonly waitsOf?: (provider: LlmProvider) => ProviderWaits;
  /** Asked in this order when the first model has failed. */
  readonly fallbacks?: readonly LlmProvider[];
};

const TRIES = 8;
const TRIES_BEFORE_FALLBACK = 3;
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 60_000;
/** A platform that asks for less names no wait: all tries would be over in a moment. */
const SHORTEST_ASKED_WAIT_MS = 1_000;

export type NextTry =
  | { readonly kind: 'again'; readonly waitMs: number; readonly canBeWoken: boolean }
  | { readonly kind: 'fallback' }
  | { readonly kind: 'end' };

/** The same request fares no better a second time, nor with another model. */
const lastingKinds: ReadonlySet<ModelFailure['kind']> = new Set([
  'aborted',
  'overflow',
  'refused',
  'unsendable',
  'budget',
]);

/** The step after the n-th failed try (from 1) of one model. Pure. */
export function nextTry(
  failure: ModelFailure,
  state: { readonly tried: number; readonly hasFallback: boolean; readonly random: number },
): NextTry {
  if (lastingKinds.has(failure.kind)) return { kind: 'end' };
  const tries = state.hasFallback ? TRIES_BEFORE_FALLBACK : TRIES;
  if (failure.retry?.kind === 'later' && state.tried < tries) {
    const waitMs = waitOf(failure.retry.afterMs, state.tried, state.random);
    return { kind: 'again', waitMs, canBeWoken: failure.isOwnLimit !== true };
  }
  return state.hasFallback ? { kind: 'fallback' } : { kind: 'end' };
}

/** 2 s × 2^(n-1) and up to 20 % more; a wait that the platform asks for wins. Neither is longer than a minute. */
function waitOf(askedMs: number | undefined, tried: number, random: number): number {
  const isAsked = askedMs !== undefined && askedMs >= SHORTEST_ASKED_WAIT_MS;
  const waitMs = isAsked ? askedMs : Math.round(FIRST_WAIT_MS * 2 ** (tried - 1) * (1 + 0.2 * random));
  return Math.min(waitMs, LONGEST_WAIT_MS);
}

/**
 * A provider that retries and falls back. A stream announces each wait by a `retrying` warning with its length
 * (the run tells the person once the waits exceed its limit), each change of model by a `fallback` one.
 */
export function withRetry(provider: LlmProvider, options: RetryOptions): LlmProvider {
  const providers = [provider, ...(options.fallbacks ?? [])];
  const own = createProviderWaits(options);
  const waitsOf = options.waitsOf ?? (() => own);

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    for (const [index, current] of providers.entries()) {
      const next = providers[index + 1];
      const waits = waitsOf(current);
      const wait = waitsOfCall(waits, signal);
      for (let tried = 1; ; tried += 1) {
        const failure = yield* untilFirstToken(current.stream(request, signal), waits.succeeded);
        if (failure === undefined) return;
        const step = decide(failure, { tried, next, signal });
        if (step.kind === 'end') return yield { type: 'error', failure };
        yield warningOf(step, { failure, tried, next });
        if (step.kind === 'fallback') break;
        await wait(step);
        if (signal.aborted) return yield { type: 'error', failure: aborted };
      }
    }
  }

  async function send(request: ModelRequest, signal: AbortSignal, onWait?: OnWait): Promise<ModelAnswer> {
    for (const [index, current] of providers.entries()) {
      const next = providers[index + 1];
      const waits = waitsOf(current);
      const wait = waitsOfCall(waits, signal);
      for (let tried = 1; ; tried += 1) {
        try {
          const answer = await current.send(request, signal);
          waits.succeeded();
          return answer;
        } catch (error) {
          if (!(error instanceof ParleyError)) throw error;
          const step = decide(failureOfError(error), { tried, next, signal });
          if (step.kind === 'end') throw error;
          if (step.kind === 'fallback') break;
          await onWait?.(step.waitMs);
          await wait(step);
          if (signal.aborted) throw error;
        }
      }
    }
    throw new ParleyError('internal', 'the last model neither answered nor ended');
  }

  const decide = (
    failure: ModelFailure,
    { tried, next, signal }: { tried: number; next: LlmProvider | undefined; signal: AbortSignal },
  ): NextTry =>
    signal.aborted
      ? { kind: 'end' }
      : nextTry(failure, { tried, hasFallback: next !== undefined, random: options.random() });

  return { id: provider.id, stream, send, model: () => provider.model() };
}

type RetryPause = Pick<Extract<NextTry, { kind: 'again' }>, 'waitMs' | 'canBeWoken'>;

/** A call that was woken and failed again knows better than the call that woke it: its next wait is sat out. */
function waitsOfCall(waits: ProviderWaits, signal: AbortSignal): (step: RetryPause) => Promise<void> {
  let wasWoken = false;
  return async ({ waitMs, canBeWoken }) => {
    const ended = await waits.wait({ ms: waitMs, canBeWoken: canBeWoken && !wasWoken }, signal);
    wasWoken = ended === 'woken';
  };
}

const aborted: ModelFailure = { kind: 'aborted', detail: 'aborted while waiting for the next try' };

/**
 * Passes events on. Returns the failure of a stream that failed before its first token, and nothing when
 * the stream is over: then its last event, whichever it was, has been passed on.
 */
async function* untilFirstToken(
  events: AsyncIterable<ModelEvent>,
  onFirstToken: () => void,
): AsyncGenerator<ModelEvent, ModelFailure | undefined> {
  const held: ModelEvent[] = [];
  let hasToken = false;
  for await (const event of events) {
    if (!hasToken && event.type === 'error') return event.failure;
    if (!hasToken && event.type === 'content_start') {
      held.push(event);
      continue;
    }
    if (!hasToken && event.type !== 'warning') {
      hasToken = true;
      onFirstToken();
    }
    yield* held.splice(0);
    yield event;
  }
  return undefined;
}

function warningOf(
  step: Exclude<NextTry, { kind: 'end' }>,
  state: { failure: ModelFailure; tried: number; next: LlmProvider | undefined },
): ModelEvent {
  const why = `${state.failure.kind}: ${state.failure.detail}`;
  if (step.kind === 'fallback') {
    const detail = `going on with ${state.next?.model().id} after ${why}`;
    return { type: 'warning', kind: 'fallback', detail, waitMs: 0 };
  }
  return {
    type: 'warning',
    kind: 'retrying',
    detail: `try ${state.tried} failed, ${why}`,
    waitMs: step.waitMs,
  };
}
