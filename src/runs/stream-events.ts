import type { AgentEvent } from '#contracts/agent-event.ts';
import type { AgentStreamEvent } from '#contracts/agent-stream.ts';
import { type AgentMessage, textOf, toolCallsOf } from '#contracts/message.ts';
import { shouldJudgeAgain, visibleWhileStreaming } from '../replies/preview.ts';
import { readableText } from '../replies/reply-pipeline.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';

type StreamedRun = Pick<ClaimedRun, 'runId' | 'sessionId' | 'isResumed'>;

/**
 * Creates the function that maps each event of a run, once it is on record, to the events for the session's followers.
 * `isOver`: the run has ended and won't continue elsewhere.
 */
export function createStreamEvents(
  run: StreamedRun,
): (event: AgentEvent, isOver: boolean) => readonly AgentStreamEvent[] {
  const answer = new ShownAnswer();
  return (event, isOver) =>
    event.type === 'message_update' ? deltas(event, run, answer) : streamEvents(event, run, isOver);
}

function streamEvents(
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
    case 'message_end':
      return event.cost === undefined
        ? []
        : [{ stream: 'session', sessionId, change: 'cost', cost: event.cost }];
    case 'turn_end':
      return toolCallsOf(event.message.parts).length > 0
        ? []
        : [
            {
              stream: 'chat',
              runId,
              phase: 'final',
              text: readableText(textOf(event.message.parts), widest),
            },
          ];
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
  { event, message }: Extract<AgentEvent, { type: 'message_update' }>,
  { runId }: StreamedRun,
  answer: ShownAnswer,
): readonly AgentStreamEvent[] {
  const chat = (shown: Shown | undefined): readonly AgentStreamEvent[] =>
    shown === undefined ? [] : [{ stream: 'chat', runId, phase: 'delta', ...shown }];
  switch (event.type) {
    case 'content_delta':
      return [{ stream: 'assistant', runId, delta: event.text }, ...chat(answer.grow(message))];
    case 'thinking_delta':
      return [{ stream: 'reasoning', runId, delta: event.thinking }];
    case 'content_recall':
    case 'warning':
      if (event.type === 'warning' && event.kind !== 'anew') return [];
      return [{ stream: 'assistant', runId, delta: '', isAnew: true }, ...chat(answer.begin(message.id))];
    default:
      return [];
  }
}

/** As in a preview: messages taken while the answer is written may make more words count as silence. */
const widest = 'announce';

type Shown = { readonly text: string; readonly isAnew?: true };

/** Reports each visible piece of a run's latest answer once. */
class ShownAnswer {
  #id: string | undefined;
  #text = '';
  #judgedLength = 0;

  begin(id: string): Shown | undefined {
    const wasShown = this.#text !== '';
    this.#id = id;
    this.#text = '';
    this.#judgedLength = 0;
    return wasShown ? { text: '', isAnew: true } : undefined;
  }

  grow({ id, parts }: AgentMessage): Shown | undefined {
    const anew = id === this.#id ? undefined : this.begin(id);
    const length = parts.reduce((sum, part) => sum + (part.type === 'text' ? part.data.text.length : 0), 0);
    if (!shouldJudgeAgain(this.#judgedLength, length)) return anew;
    this.#judgedLength = length;
    const visible = visibleWhileStreaming(textOf(parts), widest);
    const text = visible.slice(this.#text.length);
    if (text === '') return anew;
    // Keeps the longest text: words that may turn into a tag briefly shrink the visible text.
    this.#text = visible;
    return { ...anew, text };
  }
}
