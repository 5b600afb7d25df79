// One turn of the inner loop: middleware, injected messages, the model's answer, its tools, and what the loop needs to
// know to continue.

import type { AgentEvent } from '#contracts/agent-event.ts';
import { type AgentMessage, type FinishReason, finishReasonOf, toolCallsOf } from '#contracts/message.ts';
import type { ModelRequest } from '#contracts/model.ts';
import type { Conversation } from './conversation.ts';
import { faultText } from './fault-text.ts';
import { compactContext, endOfCut, passAfterTurn, passBeforeTurn } from './middleware.ts';
import { type Answer, finishOfCut, type RefusedRequest, type RunEnd, streamAnswer } from './model-turn.ts';
import { AbortedError, awaitOrAbort } from './race-abort.ts';
import { marksFor } from './repair-history.ts';
import type { OpenBatch } from './resumption.ts';
import type { Run } from './run-scope.ts';
import { type BatchOutcome, rejectCalls, runToolBatch } from './tool-batch.ts';
import { cutText, resultText } from './tool-result.ts';

export type TurnPlan = {
  /** Counted from 1, over all attempts at the run. */
  readonly turn: number;
  /** True for the attempt's first turn: no boundary precedes it. */
  readonly isFirst: boolean;
  /** Initial messages of the run; only the first turn has any. */
  readonly prompts: readonly AgentMessage[];
  /** Messages taken at the last boundary, for this turn's request. */
  readonly pending: readonly AgentMessage[];
  /** After a denied permission the model answers the person without tools. */
  readonly tools: 'offered' | 'withheld';
};

export type TurnOutcome =
  | { readonly kind: 'ended'; readonly end: RunEnd }
  | {
      readonly kind: 'complete';
      /** The model waits for the results of its calls. */
      readonly goesOn: boolean;
      readonly wasDenied: boolean;
      readonly pending: readonly AgentMessage[];
    };

export async function* runTurn(run: Run, plan: TurnPlan): AsyncGenerator<AgentEvent, TurnOutcome, void> {
  const { config, conversation, scope } = run;
  yield { type: 'turn_start', turn: plan.turn };
  yield* inject(plan.prompts, conversation);
  const stop = yield* passBeforeTurn(run, plan.turn, plan.pending);
  // Even if the run stops here: messages taken from the queue are in the transcript and must be reported.
  yield* inject(plan.pending, conversation);
  if (stop !== undefined) return { kind: 'ended', end: stop };
  if (plan.isFirst) yield* inject(await config.getSteeringMessages(), conversation);
  if (scope.signal.aborted) throw new AbortedError();

  const request = await requestOf(run, plan);
  const answer = yield* streamAnswer(request, {
    ...run,
    recover: (failed) => recover(run, plan, failed),
    ...(plan.turn < config.limits.turns && { join: (messages) => join(run, plan, messages) }),
  });
  conversation.append(answer.message);
  if (answer.usage !== undefined) run.size.count(answer.usage);
  run.cost += answer.cost ?? 0;
  if (answer.end !== undefined) return yield* endBroken(run, answer, answer.end);

  const batch = yield* runCalls(run, plan, answer);
  for (const result of batch.results) conversation.append(result);
  return yield* closeTurn(run, plan, { answer, batch });
}

/** Finishes a turn begun by an earlier attempt: the calls of its message that have no result yet. */
export async function* finishBatch(
  run: Run,
  turn: number,
  open: OpenBatch,
): AsyncGenerator<AgentEvent, TurnOutcome, void> {
  const { message, states } = open;
  const found = [...states.values()].flatMap((each) => (each.kind === 'done' ? [each.result] : []));
  yield { type: 'turn_start', turn, resumes: message, results: found };
  const plan: TurnPlan = { turn, isFirst: true, prompts: [], pending: [], tools: 'offered' };
  const answer = { message, finish: finishReasonOf(message.parts) ?? 'tool_use' };
  const batch = yield* runCalls(run, plan, answer, open);
  for (const result of batch.results) if (!found.includes(result)) run.conversation.append(result);
  return yield* closeTurn(run, plan, { answer, batch });
}

/**
 * Adds messages from people: steers, follow-ups, prompts. Each counts once, even if another writer appended it.
 */
async function* inject(
  messages: readonly AgentMessage[],
  conversation: Conversation,
): AsyncGenerator<AgentEvent, void, void> {
  for (const message of messages) {
    conversation.append(message);
    yield { type: 'message_start', message };
    yield { type: 'message_end', message };
  }
}

async function requestOf(run: Run, plan: TurnPlan): Promise<ModelRequest> {
  const { config, scope, size, specs, system } = run;
  const { transformContext, maxTokens, reasoning } = config;
  const { messages } = run.conversation;
  const shown =
    transformContext === undefined
      ? messages
      : await awaitOrAbort(() => transformContext(messages, size.tokens(messages)), scope.signal);
  return {
    system,
    messages: await awaitOrAbort(() => config.convertToLlm(shown), scope.signal),
    tools: plan.tools === 'offered' ? specs : [],
    maxTokens,
    reasoning,
  };
}

/** Adds messages that arrived before the answer's first word, and returns the request that contains them. */
async function* join(
  run: Run,
  plan: TurnPlan,
  messages: readonly AgentMessage[],
): AsyncGenerator<AgentEvent, ModelRequest, void> {
  yield* inject(messages, run.conversation);
  return await requestOf(run, plan);
}

/** Returns the request to make instead of one that was rejected because of its messages, if there is one. */
async function* recover(
  run: Run,
  plan: TurnPlan,
  refused: RefusedRequest,
): AsyncGenerator<AgentEvent, ModelRequest | undefined, void> {
  if (refused.failure.kind !== 'overflow') return await repair(run, plan, refused);
  const oldTokens = run.size.tokens(run.conversation.messages);
  const done = yield* compactContext(run, 'overflow', { oldTokens, threshold: oldTokens });
  return done.kind === 'compacted' ? await requestOf(run, plan) : undefined;
}

/** Rebuilds the request without the rejected content, which is recorded first; undefined if none can be found. */
async function repair(
  run: Run,
  plan: TurnPlan,
  { request, failure }: RefusedRequest,
): Promise<ModelRequest | undefined> {
  const { config, conversation, scope } = run;
  const marks = marksFor(failure, request.messages, conversation.messages);
  if (marks.length === 0) return undefined;
  const { keepMarks } = config;
  if (keepMarks !== undefined) await awaitOrAbort(() => keepMarks(marks), scope.signal);
  conversation.mark(marks);
  return await requestOf(run, plan);
}

/** The answer broke off: its calls get results without running, and the queue stays untouched. */
async function* endBroken(
  run: Run,
  answer: Answer,
  end: RunEnd,
): AsyncGenerator<AgentEvent, TurnOutcome, void> {
  const { reason } = end;
  const isCut = reason === 'aborted' || reason === 'timeout' || reason === 'idle';
  const text = isCut ? cutText(reason) : resultText.brokenOff;
  const results = yield* rejectCalls({ ...run, calls: toolCallsOf(answer.message.parts) }, text);
  for (const result of results) run.conversation.append(result);
  yield { type: 'turn_end', message: answer.message, toolResults: results };
  return { kind: 'ended', end };
}

async function* runCalls(
  run: Run,
  plan: TurnPlan,
  answer: Answer,
  open?: OpenBatch,
): AsyncGenerator<AgentEvent, BatchOutcome, void> {
  const calls = toolCallsOf(answer.message.parts);
  const batch = { ...run, calls, open, pollSteering: () => pollSteering(run, plan) };
  const unrunText = unrunTextOf(answer.finish, plan);
  if (unrunText === undefined) return yield* runToolBatch(batch);
  return { results: yield* rejectCalls(batch, unrunText), steering: [] };
}

/** Returns why none of the answer's calls may run, if so. */
function unrunTextOf(finish: FinishReason, { tools }: TurnPlan): string | undefined {
  if (finish === 'max_tokens') return resultText.truncated;
  if (finish === 'canceled' || finish === 'timeout' || finish === 'error') return resultText.brokenOff;
  return tools === 'withheld' ? resultText.noTools : undefined;
}

/** The last turn within the limit takes no messages: those that arrive then start the next run. */
async function pollSteering({ config }: Run, { turn }: TurnPlan): Promise<readonly AgentMessage[]> {
  return turn < config.limits.turns ? await config.getSteeringMessages() : [];
}

async function* closeTurn(
  run: Run,
  plan: TurnPlan,
  { answer, batch }: { readonly answer: Answer; readonly batch: BatchOutcome },
): AsyncGenerator<AgentEvent, TurnOutcome, void> {
  const { conversation, scope } = run;
  if (batch.halt?.kind === 'parked') {
    yield* inject(batch.steering, conversation);
    return { kind: 'ended', end: { reason: 'parked' } };
  }
  const hasCalls = batch.results.length > 0;
  const isCut = scope.signal.aborted;
  const message = markedMessage(answer.message, run, batch);
  conversation.amend(message);
  const fault = isCut ? undefined : await passAfterTurn(run, plan.turn);
  yield { type: 'turn_end', message, toolResults: batch.results };

  const end = fault ?? endOfBatch(run, batch);
  if (end !== undefined) {
    // No later turn would report messages taken between the tools.
    yield* inject(batch.steering, conversation);
    return { kind: 'ended', end };
  }
  // If an abort came with the final text, the queue is left to the next run.
  const polled = scope.signal.aborted ? [] : await pollSteering(run, plan);
  return {
    kind: 'complete',
    goesOn: hasCalls && plan.tools === 'offered',
    wasDenied: batch.halt?.kind === 'denied',
    pending: [...batch.steering, ...polled],
  };
}

function endOfBatch({ scope }: Run, { halt, results }: BatchOutcome): RunEnd | undefined {
  if (halt?.kind === 'failed') return { reason: 'failed', detail: faultText(halt.error) };
  if (halt?.kind === 'loop_guard') return { reason: 'loop_guard' };
  return scope.signal.aborted && results.length > 0 ? endOfCut(scope) : undefined;
}

/** The answer is reported before its tools run; their outcome may change its finish reason. */
function markedMessage(message: AgentMessage, { scope }: Run, batch: BatchOutcome): AgentMessage {
  const cut = scope.abortReason();
  if (batch.halt?.kind === 'denied') return withFinish(message, 'permission_denied');
  if (cut !== undefined && batch.results.length > 0) return withFinish(message, finishOfCut(cut));
  return message;
}

function withFinish(message: AgentMessage, reason: FinishReason): AgentMessage {
  const parts = message.parts.map((part) =>
    part.type === 'finish' ? { ...part, data: { ...part.data, reason } } : part,
  );
  return { ...message, parts };
}
