import type { CallSubject } from '#contracts/call-ledger.ts';
import { ParleyError } from '#contracts/errors.ts';
import type {
  CacheMiss,
  LlmProvider,
  ModelAnswer,
  ModelEvent,
  ModelFailure,
  ModelRequest,
  Usage,
} from '#contracts/model.ts';
import { failureOfError } from '../api-fault.ts';

/** Observes each attempt at a model call. It defers its work: the call never waits for it. */
export interface CallObserver {
  begin(call: ObservedCall): CallObservation;
}

/** The observation of one attempt. */
export type CallObservation = {
  event?(event: ModelEvent): void;
  /** Called once. */
  end(outcome: CallOutcome): void;
};

/** An attempt as it is sent. */
export type ObservedCall = {
  readonly provider: string;
  readonly model: string;
  readonly request: ModelRequest;
  /** Absent outside a run. */
  readonly subject: CallSubject | undefined;
};

export type ObservedFailure = Pick<
  ModelFailure,
  'kind' | 'detail' | 'refusal' | 'isAboutModel' | 'isLongWait'
>;

/** How an attempt ended. */
export type CallOutcome =
  | {
      readonly kind: 'answered';
      readonly usage: Usage;
      readonly cost: number;
      readonly model: string;
      /** The model doesn't support tools and was asked without those of the request. */
      readonly withoutTools?: true;
      readonly cacheMiss?: CacheMiss;
      /** The answer, unless it was streamed. */
      readonly text?: string;
    }
  | { readonly kind: 'failed'; readonly failure: ObservedFailure }
  /** The caller stopped reading before the end. */
  | { readonly kind: 'abandoned' };

/** Returns the provider with every attempt reported to the observers; the provider itself if there are none. */
export function observed(
  provider: LlmProvider,
  observers: readonly CallObserver[],
  subject: CallSubject | undefined,
): LlmProvider {
  if (observers.length === 0) return provider;
  const begin = (request: ModelRequest): Required<CallObservation> => {
    const call = { provider: provider.id, model: provider.model().id, request, subject };
    const seen = observers.flatMap((each) => quietly(() => each.begin(call)) ?? []);
    return {
      event: (event) => {
        for (const each of seen) quietly(() => each.event?.(event));
      },
      end: (outcome) => {
        for (const each of seen) quietly(() => each.end(outcome));
      },
    };
  };

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const call = begin(request);
    let outcome: CallOutcome = { kind: 'abandoned' };
    try {
      for await (const event of provider.stream(request, signal)) {
        call.event(event);
        if (event.type === 'complete') outcome = { ...event, kind: 'answered' };
        if (event.type === 'error') outcome = { kind: 'failed', failure: event.failure };
        yield event;
      }
    } finally {
      call.end(outcome);
    }
  }

  async function send(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    const call = begin(request);
    let outcome: CallOutcome = { kind: 'abandoned' };
    try {
      const answer = await provider.send(request, signal);
      outcome = { ...answer, kind: 'answered' };
      return answer;
    } catch (error) {
      outcome = { kind: 'failed', failure: failureOf(error) };
      throw error;
    } finally {
      call.end(outcome);
    }
  }

  return { ...provider, stream, send };
}

function failureOf(error: unknown): ObservedFailure {
  return error instanceof ParleyError ? failureOfError(error) : { kind: 'failed', detail: 'internal' };
}

/** Ignores a failing observation, which matters less than the answer. */
function quietly<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
