import type { Clock } from '#contracts/clock.ts';
import type { CallObserver, CallOutcome } from './call-observer.ts';
import { attributes, newSpanId, newTraceId, operations, runSpanId, type Tracer, traceIdOf } from './spans.ts';

/** Records a span for each attempt at a model call, as a child of its run's span. */
export function tracedCalls(tracer: Tracer, clock: Clock): CallObserver {
  return {
    begin: ({ provider, model, subject }) => {
      const startedAt = clock.now();
      return {
        end: (outcome) => {
          tracer.record({
            traceId: subject ? traceIdOf(subject.runId) : newTraceId(),
            spanId: newSpanId(),
            parentId: subject && runSpanId(subject.runId, subject.epoch),
            name: `${operations.call} ${model}`,
            kind: 'client',
            startedAt,
            endedAt: clock.now(),
            attributes: {
              [attributes.operation]: operations.call,
              [attributes.provider]: provider,
              [attributes.requestModel]: model,
              [attributes.conversation]: subject?.sessionId,
              [attributes.agent]: subject?.agentId,
              [attributes.run]: subject?.runId,
              [attributes.purpose]: subject?.purpose,
              ...countsOf(outcome),
            },
            error: outcome.kind === 'failed' ? outcome.failure.kind : undefined,
          });
        },
      };
    },
  };
}

function countsOf(outcome: CallOutcome): Record<string, string | number> {
  if (outcome.kind !== 'answered') return {};
  const { usage, cost, model } = outcome;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return {
    [attributes.responseModel]: model,
    [attributes.inputTokens]: inputTokens + cacheReadTokens + cacheWriteTokens,
    [attributes.outputTokens]: outputTokens,
    [attributes.cacheReadTokens]: cacheReadTokens,
    [attributes.cacheWriteTokens]: cacheWriteTokens,
    [attributes.cost]: cost,
  };
}
