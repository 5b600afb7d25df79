import type { AgentEvent } from '#contracts/agent-event.ts';
import type { AgentStreamEvent } from '#contracts/agent-stream.ts';
import { textOf, toolCallsOf } from '#contracts/message.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';

type StreamedRun = Pick<ClaimedRun, 'runId' | 'sessionId' | 'isResumed'>;

/**
 * The events that followers of a session are told for one of the loop's, once that one is on record. `isOver`: the
 * run has ended, and is not to go on elsewhere.
 */
export function streamEvents(
  event: AgentEvent,
  { runId, sessionId, isResumed }: StreamedRun,
  isOver: boolean,
): readonly AgentStreamEvent[] {
  switch (event.type) {
    case 'agent_start':
      return isResumed ? [] : [{ stream: 'lifecycle', runId, phase: 'start' }];
    case 'agent_end':
      if (!isOver) return [];
      return event.reason === 'natural'
        ? [{ stream: 'lifecycle', runId, phase: 'end' }]
        : [{ stream: 'lifecycle', runId, phase: 'error', reason: event.reason }];
    case 'message_update':
      return deltas(event, runId);
    case 'message_end':
      return event.spent === undefined
        ? []
        : [{ stream: 'session', sessionId, change: 'cost', cost: event.spent.cost }];
    case 'turn_end':
      return toolCallsOf(event.message.parts).length > 0
        ? []
        : [{ stream: 'chat', runId, phase: 'final', text: textOf(event.message.parts) }];
    case 'tool_execution_start': {
      const { id: callId, name } = event.call;
      return [{ stream: 'tool', runId, callId, name, phase: 'start', isError: false }];
    }
    case 'tool_execution_end': {
      const { callId, name, isError } = event;
      return [{ stream: 'tool', runId, callId, name, phase: 'end', isError }];
    }
    case 'tool_execution_parked': {
      const { callId, name } = event;
      return [{ stream: 'tool', runId, callId, name, phase: 'parked', isError: false }];
    }
    case 'compaction_start': {
      const { oldTokens, threshold } = event;
      return [{ stream: 'compaction', runId, phase: 'start', oldTokens, threshold }];
    }
    case 'compaction_end':
      return [{ stream: 'compaction', runId, phase: event.isDone ? 'done' : 'failed' }];
    default:
      return [];
  }
}

function deltas(
  { event }: Extract<AgentEvent, { type: 'message_update' }>,
  runId: string,
): readonly AgentStreamEvent[] {
  switch (event.type) {
    case 'content_delta':
      return [
        { stream: 'assistant', runId, delta: event.text },
        { stream: 'chat', runId, phase: 'delta', text: event.text },
      ];
    case 'thinking_delta':
      return [{ stream: 'reasoning', runId, delta: event.thinking }];
    case 'warning':
      return event.kind === 'anew' ? [{ stream: 'assistant', runId, delta: '', isAnew: true }] : [];
    default:
      return [];
  }
}
