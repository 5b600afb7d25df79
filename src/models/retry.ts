/**
 * Decides what to call next when a model call fails before its first token: the same model again (8
 * attempts; 3 if another model follows), then the fallback models. There is no retry after an abort, an
 * overflow or a refusal, nor once the person may have seen a token. A retry sends exactly the same
 * stateless request, so the person's message is never duplicated.
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
import { failureOfError } from './api-fault.ts';
import { createProviderWaits, type ProviderWaits } from './provider-waits.ts';

const TRIES = 8;
const TRIES_BEFORE_FALLBACK = 3;
const TRIES_OF_SLIP = 3;
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 60_000;
/** A shorter requested wait is ignored, because all attempts would be over in a moment. */
const SHORTEST_ASKED_WAIT_MS = 1_000;

export type NextTry =
  | { readonly kind: 'again'; readonly waitMs: number; readonly canBeWoken: boolean }
  | { readonly kind: 'fallback' }
  | { readonly kind: 'end' };

/** Failures that the same request would hit again, also with another model. */
const lastingKinds: ReadonlySet<ModelFailure['kind']> = new Set([
  'aborted',
  'overflow',
  'refused',
  'unsendable',
  'budget',
]);

/** Decides the step after the n-th failed attempt (from 1) at one model. Pure. */
export function nextTry(
  failure: ModelFailure,
  state: { readonly tried: number; readonly hasFallback: boolean; readonly random: number },
): NextTry {
  if (lastingKinds.has(failure.kind)) return { kind: 'end' };
  const tries = failure.isLongWait ? 0 : triesFor(failure, state.hasFallback);
  if (failure.retry?.kind === 'later' && state.tried < tries) {
    const waitMs = waitOf(failure.retry.afterMs, state.tried, state.random);
    return { kind: 'again', waitMs, canBeWoken: failure.isOwnLimit !== true };
  }
  return state.hasFallback ? { kind: 'fallback' } : { kind: 'end' };
}

function triesFor({ refusal }: ModelFailure, hasFallback: boolean): number {
  // Each try is a whole answer of the model.
  if (refusal === 'slip') return TRIES_OF_SLIP;
  return hasFallback ? TRIES_BEFORE_FALLBACK : TRIES;
}

/** Returns the wait that the platform asks for, or else 2 s × 2^(n-1) plus up to 20 %; at most a minute. */
function waitOf(askedMs: number | undefined, tried: number, random: number): number {
  const isAsked = askedMs !== undefined && askedMs >= SHORTEST_ASKED_WAIT_MS;
  const waitMs = isAsked ? askedMs : Math.round(FIRST_WAIT_MS * 2 ** (tried - 1) * (1 + 0.2 * random));
  return Math.min(waitMs, LONGEST_WAIT_MS);
}

/**
 * Returns a provider that retries and falls back. A stream announces each wait by a `retrying` warning with its length
 * (the run notifies the person once the waits exceed its limit), and each change of model by a `fallback` one.
 */
export function withRetry(
  provider: LlmProvider,
  options: {
    readonly clock: Clock;
    /** In [0, 1). */
    readonly random: () => number;
    /** Shared by all callers of the same provider; default: this provider's own. */
    readonly waitsOf?: (provider: LlmProvider) => ProviderWaits;
    /** Asked in this order when the first model has failed. */
    readonly fallbacks?: readonly LlmProvider[];
  },
): LlmProvider {
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

/** Returns the wait function of one call. If the call was woken but fails again, its next wait runs its full length. */
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
 * the stream has ended, in which case its last event, whatever it was, has been passed on.
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
    if (!hasToken && event.type !== 'warning' && event.type !== 'progress') {
      hasToken = true;
      onFirstToken();
    }
    if (hasToken) yield* held.splice(0);
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
    const detail = `continuing with ${state.next?.model().id} after ${why}`;
    return { type: 'warning', kind: 'fallback', detail, waitMs: 0 };
  }
  return {
    type: 'warning',
    kind: 'retrying',
    detail: `attempt ${state.tried} failed, ${why}`,
    waitMs: step.waitMs,
  };
}
