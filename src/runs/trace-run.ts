import type { AgentEvent } from '#contracts/agent-event.ts';
import type { Clock } from '#contracts/clock.ts';
import {
  attributes,
  newSpanId,
  operations,
  runSpanId,
  type Span,
  type Tracer,
  traceIdOf,
} from '../models/observers/spans.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';

type TracedRun = Pick<ClaimedRun, 'runId' | 'sessionId' | 'agentId' | 'epoch'>;

/** Records a span for this attempt at a run and one for each of its tool calls, from the events passed to it. */
export function traceRun(
  tracer: Tracer | undefined,
  { runId, sessionId, agentId, epoch }: TracedRun,
  clock: Clock,
): (event: AgentEvent) => void {
  if (tracer === undefined) return () => undefined;
  const traceId = traceIdOf(runId);
  const spanId = runSpanId(runId, epoch);
  const startedAt = clock.now();
  const calls = new Map<string, number>();
  const record = (span: Omit<Span, 'traceId' | 'kind' | 'endedAt'>) =>
    tracer.record({ ...span, traceId, kind: 'internal', endedAt: clock.now() });
  return (event) => {
    if (event.type === 'tool_execution_start') calls.set(event.call.id, clock.now());
    if (event.type === 'tool_execution_end')
      record({
        spanId: newSpanId(),
        parentId: spanId,
        name: `${operations.tool} ${event.name}`,
        startedAt: calls.get(event.callId) ?? clock.now(),
        attributes: {
          [attributes.operation]: operations.tool,
          [attributes.tool]: event.name,
          [attributes.toolCall]: event.callId,
        },
        error: event.isError ? 'tool_error' : undefined,
      });
    if (event.type === 'agent_end')
      record({
        spanId,
        name: `${operations.run} ${agentId}`,
        startedAt,
        attributes: {
          [attributes.operation]: operations.run,
          [attributes.agent]: agentId,
          [attributes.conversation]: sessionId,
          [attributes.run]: runId,
          [attributes.endReason]: event.reason,
        },
        error: event.reason === 'natural' || event.reason === 'parked' ? undefined : event.reason,
      });
  };
}
