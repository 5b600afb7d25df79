import { BudgetSpentError, type CallEnd, type CallLedger, type CallTicket } from '#contracts/call-ledger.ts';
import { ParleyError } from '#contracts/errors.ts';
import type {
  CacheMiss,
  LlmProvider,
  ModelAnswer,
  ModelEvent,
  ModelFailure,
  ModelRequest,
} from '#contracts/model.ts';
import { failureError, failureOfError, neverSent } from './api-fault.ts';
import { StreamedBytes } from './streamed-bytes.ts';

/**
 * Returns the provider with a ledger row for every call: opened before the call is sent, closed before its last event
 * is passed on. It belongs below retries and fallbacks, so that each attempt is one row, at the prices of its own
 * model. A call that breaks off counts as unknown, since the provider may have billed it; one that Parley stops costs
 * what had arrived.
 */
export function metered(provider: LlmProvider, ledger: CallLedger): LlmProvider {
  const open = (request: ModelRequest): Promise<CallTicket> =>
    ledger.open({ provider: provider.id, model: provider.model(), request });
  // Once ready, the call is sent without delay. If loading fails, the call fails too and reports it.
  const ready = () => provider.ready?.().catch(() => undefined);

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    await ready();
    if (signal.aborted) return yield { type: 'error', failure: neverSent };
    let ticket: CallTicket;
    try {
      ticket = await open(request);
    } catch (error) {
      return yield { type: 'error', failure: unopened(error) };
    }
    // Aborted while its row was being opened, so it is never sent.
    if (signal.aborted) {
      await ledger.close(ticket, { state: 'void' });
      return yield { type: 'error', failure: neverSent };
    }
    const streamed = new StreamedBytes();
    try {
      for await (const event of provider.stream(request, signal)) {
        streamed.read(event);
        if (event.type !== 'complete' && event.type !== 'error') {
          yield event;
          continue;
        }
        const held = await ledger.close(ticket, endOf(event, streamed.written) ?? streamed.stopped());
        yield event.type === 'complete' ? corrected(event, held) : event;
      }
    } catch (error) {
      await ledger.close(ticket, { state: 'unknown' });
      throw error;
    } finally {
      // The caller has stopped reading.
      await ledger.close(ticket, streamed.stopped());
    }
  }

  async function send(request: ModelRequest, signal: AbortSignal): Promise<ModelAnswer> {
    await ready();
    if (signal.aborted) throw failureError(neverSent);
    const ticket = await open(request);
    let end: CallEnd = { state: 'unknown' };
    try {
      if (signal.aborted) throw failureError(neverSent);
      const answer = await provider.send(request, signal);
      end = endOfAnswer(answer, Buffer.byteLength(answer.text));
      return corrected(answer, await ledger.close(ticket, end));
    } catch (error) {
      if (error instanceof ParleyError) end = endOfFailure(failureOfError(error));
      throw error;
    } finally {
      await ledger.close(ticket, end);
    }
  }

  return { id: provider.id, stream, send, model: () => provider.model() };
}

/** Returns the end of a stream; undefined if it was stopped. */
function endOf(
  event: Extract<ModelEvent, { type: 'complete' | 'error' }>,
  writtenBytes: number,
): CallEnd | undefined {
  if (event.type === 'complete') return endOfAnswer(event, writtenBytes);
  const { kind, isFree } = event.failure;
  return kind === 'aborted' && !isFree ? undefined : endOfFailure(event.failure);
}

function endOfFailure({ isFree, counted }: ModelFailure): CallEnd {
  if (isFree) return { state: 'void' };
  return counted ? { state: 'settled', ...counted } : { state: 'unknown' };
}

/** Replaces an impossible count, by which the context would seem too long for its window. */
function corrected<Answer extends Pick<ModelAnswer, 'usage' | 'cost'>>(
  answer: Answer,
  held: Pick<ModelAnswer, 'usage' | 'cost'> | undefined,
): Answer {
  return held === undefined ? answer : { ...answer, ...held, isUncounted: true };
}

/** An answer whose tokens weren't counted costs its bound; their estimate still determines the context's size. */
function endOfAnswer(
  { usage, cost, model, isUncounted, withoutTools, cacheMiss }: MeteredAnswer,
  writtenBytes: number,
): CallEnd {
  const answered = { usage, model, ...(withoutTools && { withoutTools }), ...(cacheMiss && { cacheMiss }) };
  if (isUncounted) return { state: 'unknown', ...answered };
  return { state: 'settled', cost, writtenBytes, ...answered };
}

type MeteredAnswer = Pick<ModelAnswer, 'usage' | 'cost' | 'model' | 'isUncounted'> & {
  readonly withoutTools?: true;
  readonly cacheMiss?: CacheMiss;
};

/** Returns the failure of a call that was never sent. If the store is unreachable, it is retried like a provider. */
function unopened(error: unknown): ModelFailure {
  if (error instanceof BudgetSpentError)
    return { kind: 'budget', budget: error.scope, detail: error.message, isFree: true };
  const fault = error instanceof ParleyError ? error : undefined;
  const detail = `the call could not be recorded: ${fault?.code ?? 'internal'}`;
  return { kind: 'failed', detail, isFree: true, ...(fault && { retry: fault.retry }) };
}
