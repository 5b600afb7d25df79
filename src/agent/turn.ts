// One turn of the inner loop: middleware, injected messages, the model's answer, its tools, and what the
// loop needs to know to go on.

import type { AgentEvent } from '#contracts/agent-event.ts';
import { type AgentMessage, type FinishReason, finishReasonOf, toolCallsOf } from '#contracts/message.ts';
import type { ModelRequest, ToolSpec } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import type { Conversation } from './conversation.ts';
import { faultText } from './fault-text.ts';
import type { AgentContext, AgentLoopConfig, BeforeTurn } from './loop-config.ts';
import type { LoopGuard } from './loop-guard.ts';
import { marksFor } from './mend-history.ts';
import { type Answer, finishOfCut, type Refused, type RunEnd, streamAnswer } from './model-turn.ts';
import { AbortedError, awaitOrAbort, raceAbort } from './race-abort.ts';
import { cutText, resultText } from './result-text.ts';
import type { OpenBatch } from './resumption.ts';
import type { RunScope } from './run-scope.ts';
import { type BatchOutcome, rejectCalls, runToolBatch } from './tool-batch.ts';

/** State shared by all turns of a run. */
export type Run = {
  readonly config: AgentLoopConfig;
  readonly system: AgentContext['system'];
  readonly tools: ReadonlyMap<string, Tool>;
  readonly specs: readonly ToolSpec[];
  readonly conversation: Conversation;
  readonly scope: RunScope;
  readonly guard: LoopGuard;
  readonly callIds: Set<string>;
};

export type TurnPlan = {
  /** Counted from 1, over all attempts at the run. */
  readonly turn: number;
  /** True for the attempt's first turn: no boundary precedes it. */
  readonly isFirst: boolean;
  /** Initial messages of the run; only the first turn has any. */
  readonly prompts: readonly AgentMessage[];
  /** Taken at the last boundary, for this turn's request. */
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
  const stop = yield* passMiddleware(run, plan.turn);
  // Also when the run stops here: what was taken from the queue is in the transcript and must be told.
  yield* inject(plan.pending, conversation);
  if (stop !== undefined) return { kind: 'ended', end: stop };
  if (plan.isFirst) yield* inject(await config.getSteeringMessages(), conversation);
  if (scope.signal.aborted) throw new AbortedError();

  const request = await requestOf(run, plan);
  const answer = yield* streamAnswer(request, { ...run, mend: (failed) => mend(run, plan, failed) });
  conversation.append(answer.message);
  if (answer.end !== undefined) return yield* endBroken(run, answer, answer.end);

  const batch = yield* runCalls(run, plan, answer);
  for (const result of batch.results) conversation.append(result);
  return yield* closeTurn(run, plan, { answer, batch });
}

/** The rest of a turn that another attempt has begun: the calls of its message that have no result yet. */
export async function* finishBatch(
  run: Run,
  turn: number,
  open: OpenBatch,
): AsyncGenerator<AgentEvent, TurnOutcome, void> {
  const { message, states } = open;
  yield { type: 'turn_start', turn, resumes: message };
  const plan: TurnPlan = { turn, isFirst: true, prompts: [], pending: [], tools: 'offered' };
  const answer = { message, finish: finishReasonOf(message.parts) ?? 'tool_use' };
  const batch = yield* runCalls(run, plan, answer, open);
  const found = new Set([...states.values()].flatMap((each) => (each.kind === 'done' ? [each.result] : [])));
  for (const result of batch.results) if (!found.has(result)) run.conversation.append(result);
  return yield* closeTurn(run, plan, { answer, batch });
}

/**
 * Messages from people: steering, follow-ups, prompts. Each counts once, also if another writer appended it.
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

/** Why the run ends before this turn's model call, if it does. */
async function* passMiddleware(run: Run, turn: number): AsyncGenerator<AgentEvent, RunEnd | undefined, void> {
  const { config, conversation, scope } = run;
  for (const before of config.beforeTurn ?? []) {
    const asked = await raceAbort(() => before({ turn, messages: conversation.messages }), scope.signal);
    if (asked.kind === 'aborted') return endOfCut(scope);
    if (asked.kind === 'failed') return { reason: 'failed', detail: faultText(asked.error) };
    const verdict = asked.value;
    if (verdict.kind === 'stop') return { reason: 'stopped', detail: verdict.detail };
    if (verdict.kind === 'compact') {
      const end = yield* compactContext(run, verdict);
      if (end !== undefined) return end;
    }
  }
  return undefined;
}

type Compaction = Extract<Awaited<ReturnType<BeforeTurn>>, { readonly kind: 'compact' }>;

/** A failed compaction leaves the history as it is and ends the run. */
async function* compactContext(
  { conversation, scope }: Run,
  compaction: Compaction,
): AsyncGenerator<AgentEvent, RunEnd | undefined, void> {
  const { oldTokens, threshold } = compaction;
  yield { type: 'compaction_start', oldTokens, threshold };
  const compacted = await raceAbort(() => compaction.compact(), scope.signal);
  if (compacted.kind === 'done') conversation.replace(compacted.value);
  yield { type: 'compaction_end', isDone: compacted.kind === 'done' };
  if (compacted.kind === 'aborted') return endOfCut(scope);
  if (compacted.kind === 'failed') {
    return { reason: 'compaction_failed', detail: faultText(compacted.error) };
  }
  return undefined;
}

async function requestOf(run: Run, plan: TurnPlan): Promise<ModelRequest> {
  const { config, conversation, scope, specs, system } = run;
  const { transformContext, thinkingTokens } = config;
  const shown =
    transformContext === undefined
      ? conversation.messages
      : await awaitOrAbort(() => transformContext(conversation.messages), scope.signal);
  return {
    system,
    messages: await awaitOrAbort(() => config.convertToLlm(shown), scope.signal),
    tools: plan.tools === 'offered' ? specs : [],
    ...(thinkingTokens === undefined ? {} : { thinkingTokens }),
  };
}

/** The request without what it was refused for, on record before it is sent; nothing when there is no such thing. */
async function mend(
  run: Run,
  plan: TurnPlan,
  { request, failure }: Refused,
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

/** Why no call of the answer runs, if none does. */
function unrunTextOf(finish: FinishReason, { tools }: TurnPlan): string | undefined {
  if (finish === 'max_tokens') return resultText.truncated;
  if (finish === 'canceled' || finish === 'timeout' || finish === 'error') return resultText.brokenOff;
  return tools === 'withheld' ? resultText.noTools : undefined;
}

/** The last turn that the limit allows takes nothing in: what arrives then starts the next run. */
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
  // An abort that came with the final text leaves the queue to the next run.
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

/** The answer is told before its tools run; what became of them may change how it counts as finished. */
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

async function passAfterTurn(
  { config, conversation, scope }: Run,
  turn: number,
): Promise<RunEnd | undefined> {
  for (const after of config.afterTurn ?? []) {
    const passed = await raceAbort(() => after({ turn, messages: conversation.messages }), scope.signal);
    if (passed.kind === 'aborted') return endOfCut(scope);
    if (passed.kind === 'failed') return { reason: 'failed', detail: faultText(passed.error) };
  }
  return undefined;
}

function endOfCut(scope: RunScope): RunEnd {
  return { reason: scope.abortReason() ?? 'aborted' };
}
