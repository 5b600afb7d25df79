// One answer of the model: message_start, an update per stream event, message_end. It always ends with a
// message that has its finish part, also when the stream breaks off or the run is cut short.

import type { AgentEvent, EndReason } from '#contracts/agent-event.ts';
import { type AgentMessage, type FinishReason, toolCallsOf } from '#contracts/message.ts';
import type { ModelEvent, ModelFailure, ModelRequest, Usage } from '#contracts/model.ts';
import { AssistantDraft } from './assistant-draft.ts';
import type { AgentLoopConfig } from './loop-config.ts';
import { openModelStream } from './model-stream.ts';
import type { CutReason, RunScope } from './run-scope.ts';

export type RunEnd = { readonly reason: EndReason; readonly detail?: string };

export type Answer = {
  readonly message: AgentMessage;
  readonly finish: FinishReason;
  /** Set when the answer ends the run: no tools run, nothing is taken from the queue. */
  readonly end?: RunEnd;
};

export type ModelTurn = {
  readonly config: AgentLoopConfig;
  readonly scope: RunScope;
  /** Ids of the calls in the transcript; those of this answer are added. */
  readonly callIds: Set<string>;
};

export async function* streamAnswer(
  request: ModelRequest,
  turn: ModelTurn,
): AsyncGenerator<AgentEvent, Answer, void> {
  const { clock, newId } = turn.config;
  const draft = new AssistantDraft(newId(), clock.now(), turn.callIds);
  yield { type: 'message_start', message: draft.snapshot() };

  const stream = openModelStream(request, turn);
  try {
    for (;;) {
      const step = await stream.next();
      const ending = step.kind === 'cut' ? endingOfCut(turn.scope.cut()) : endingOf(step.event, turn.scope);
      if (step.kind === 'event' && step.event.type !== 'complete') {
        draft.write(step.event);
        yield { type: 'message_update', message: draft.snapshot(), event: step.event };
      }
      if (ending === undefined) continue;
      const { usage, model, end } = ending;
      const finish = finishOf(ending.finish, draft.snapshot());
      const stamp = { time: clock.now(), ...(model === undefined ? {} : { model }) };
      const message = draft.finish(finish, stamp);
      yield { type: 'message_end', message, ...(usage === undefined ? {} : { usage }) };
      return { message, finish, ...(end === undefined ? {} : { end }) };
    }
  } finally {
    stream.close();
  }
}

/** Some providers say `end_turn` beside calls, or `tool_use` without any: what the answer holds decides. */
function finishOf(said: FinishReason, { parts }: AgentMessage): FinishReason {
  if (said !== 'end_turn' && said !== 'tool_use') return said;
  return toolCallsOf(parts).length > 0 ? 'tool_use' : 'end_turn';
}

type Ending = {
  readonly finish: FinishReason;
  readonly usage?: Usage;
  readonly model?: string;
  readonly end?: RunEnd;
};

function endingOf(event: ModelEvent, scope: RunScope): Ending | undefined {
  if (event.type === 'error') return endingOfFailure(event.failure, scope);
  if (event.type !== 'complete') return undefined;
  const { finish, usage, model } = event;
  if (finish === 'end_turn' || finish === 'tool_use' || finish === 'max_tokens') {
    return { finish, usage, model };
  }
  return { finish: 'error', usage, model, end: { reason: 'model_error', detail: `finish reason ${finish}` } };
}

function endingOfFailure({ kind, detail }: ModelFailure, scope: RunScope): Ending {
  if (kind === 'aborted') return endingOfCut(scope.cut());
  if (kind === 'idle') return endingOfCut('idle');
  return { finish: 'error', end: { reason: 'model_error', detail: `${kind}: ${detail}` } };
}

function endingOfCut(cut: CutReason | undefined): Ending {
  const reason = cut ?? 'aborted';
  return { finish: finishOfCut(reason), end: { reason } };
}

/** How the assistant message of a run finishes that was cut short. */
export function finishOfCut(cut: CutReason): FinishReason {
  return cut === 'aborted' ? 'canceled' : 'timeout';
}
