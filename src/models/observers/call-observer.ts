import type { CallSubject } from '#contracts/call-ledger.ts';
import { ParleyError } from '#contracts/errors.ts';
import type {
  LlmProvider,
  ModelAnswer,
  ModelEvent,
  ModelFailure,
  ModelRequest,
  Usage,
} from '#contracts/model.ts';
import { failureOfError } from '../model-failure.ts';

/** Sees each try of a model call. Its work waits until later: the call doesn't wait for it, whatever it does. */
export interface CallObserver {
  begin(call: ObservedCall): CallObservation;
}

/** One try, seen from its beginning. */
export type CallObservation = {
  event?(event: ModelEvent): void;
  /** Called once. */
  end(outcome: CallOutcome): void;
};

/** A try as it leaves. */
export type ObservedCall = {
  readonly provider: string;
  readonly model: string;
  readonly request: ModelRequest;
  /** Absent outside a run. */
  readonly subject: CallSubject | undefined;
};

export type ObservedFailure = Pick<ModelFailure, 'kind' | 'detail' | 'isAboutModel'>;

export type CallOutcome =
  | {
      readonly kind: 'answered';
      readonly usage: Usage;
      readonly cost: number;
      readonly model: string;
      /** The model takes no tools, and was asked without those of the request. */
      readonly withoutTools?: true;
      /** The answer, unless it was streamed. */
      readonly text?: string;
    }
  | { readonly kind: 'failed'; readonly failure: ObservedFailure }
  /** Nobody waited for its end. */
  | { readonly kind: 'abandoned' };

/** The provider with every try shown to the observers; the provider itself when there are none. */
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

/** An observation that fails is worth less than the answer. */
function quietly<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
