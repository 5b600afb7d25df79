// The calls of one assistant message: either all of them, or those left by an earlier attempt. Preparation and results
// keep the source order, end events arrive as the tools end, and every call gets exactly one result, whatever happens.

import { cleanText, fitBytes } from '#channel-kit/clean-text.ts';
import type { AgentEvent } from '#contracts/agent-event.ts';
import type { AgentMessage, ToolCallData } from '#contracts/message.ts';
import type { ParkRequest, Tool, ToolOutput } from '#contracts/tool.ts';
import { faultText } from './fault-text.ts';
import type { AgentLoopConfig, ToolResult } from './loop-config.ts';
import {
  type Halt,
  type Preparation,
  type PreparedCall,
  prepareCall,
  type WithheldCall,
  withhold,
} from './prepare-call.ts';
import { settleWithGrace } from './race-abort.ts';
import type { RunScope } from './run-scope.ts';
import { begunText, boundResult, cutText, errorResult, resultMessage, resultText } from './tool-result.ts';

export type ToolBatch = Preparation & {
  readonly calls: readonly ToolCallData[];
  /** Returns the messages that arrived meanwhile; called before each tool of a sequential batch except the first. */
  readonly pollSteering: () => Promise<readonly AgentMessage[]>;
};

export type BatchOutcome = {
  /** One per call, in source order; none for a parked or asked call or for the calls not started after it. */
  readonly results: readonly AgentMessage[];
  readonly steering: readonly AgentMessage[];
  readonly halt?: BatchHalt;
};

export type BatchHalt =
  | { readonly kind: 'denied' }
  | { readonly kind: 'loop_guard' }
  | { readonly kind: 'parked' }
  /** Polling for steers threw. */
  | { readonly kind: 'failed'; readonly error: unknown };

/** Runs the calls as the configuration and their tools allow. Never throws. */
export async function* runToolBatch(batch: ToolBatch): AsyncGenerator<AgentEvent, BatchOutcome, void> {
  const results = new Map<string, AgentMessage>();
  let steering: readonly AgentMessage[] = [];
  let halt: BatchHalt | undefined;
  /** Set once nothing else runs: the result text of the remaining calls. */
  let rest: string | undefined;
  const isTailSkipped = batch.config.steerTail === 'skip';

  for (const [index, group] of groupsOf(batch).entries()) {
    if (index > 0 && rest === undefined && isTailSkipped && batch.open?.isOvertaken)
      rest = resultText.skipped;
    if (index > 0 && rest === undefined && steering.length === 0 && !batch.scope.signal.aborted) {
      const polled = await pollSteering(batch);
      if (polled.kind === 'failed') [halt, rest] = [polled, resultText.cancelled];
      else steering = polled.messages;
      if (steering.length > 0 && isTailSkipped) rest = resultText.skipped;
    }
    const prepared =
      rest === undefined ? yield* prepareGroup(group, batch) : yield* answerAll(group, rest, batch);
    const outcome = yield* runGroup(prepared.calls, batch);
    for (const [callId, message] of outcome.results) results.set(callId, message);
    if (outcome.isParked) {
      return { results: inSourceOrder(results, batch), steering, halt: { kind: 'parked' } };
    }
    if (prepared.halt !== undefined) [halt, rest] = [{ kind: prepared.halt }, resultText.cancelled];
  }
  return { results: inSourceOrder(results, batch), steering, ...(halt === undefined ? {} : { halt }) };
}

/** Gives every call the same error result without running it, each with its start, end and message. */
export async function* rejectCalls(
  batch: Omit<ToolBatch, 'pollSteering'>,
  text: string,
): AsyncGenerator<AgentEvent, readonly AgentMessage[], void> {
  const withheld = (yield* answerAll(batch.calls, text, batch)).calls;
  return inSourceOrder(yield* emitResults(withheld, yield* emitAnswered(withheld), batch.config), batch);
}

function inSourceOrder(
  results: ReadonlyMap<string, AgentMessage>,
  { calls }: Pick<ToolBatch, 'calls'>,
): readonly AgentMessage[] {
  return calls.flatMap(({ id }) => results.get(id) ?? []);
}

/**
 * Splits the calls into groups that run together. A parallel batch is a single group, so it is never recalled in part.
 * In a sequential batch, the calls begun by an earlier attempt come first, since they can't be recalled either.
 */
function groupsOf({ calls, config, tools, open }: ToolBatch): readonly (readonly ToolCallData[])[] {
  const isParallel =
    config.toolExecution === 'parallel' ||
    // An unknown tool never runs, so it doesn't make the batch sequential.
    (config.toolExecution === 'auto' && calls.every((call) => tools.get(call.name)?.parallelSafe ?? true));
  if (isParallel) return [calls];
  const isFresh = ({ id }: ToolCallData) => (open?.states.get(id)?.kind ?? 'fresh') === 'fresh';
  const begun = calls.filter((call) => !isFresh(call));
  return [...(begun.length > 0 ? [begun] : []), ...calls.filter(isFresh).map((call) => [call])];
}

async function pollSteering(
  batch: ToolBatch,
): Promise<{ kind: 'polled'; messages: readonly AgentMessage[] } | { kind: 'failed'; error: unknown }> {
  try {
    return { kind: 'polled', messages: await batch.pollSteering() };
  } catch (error) {
    return { kind: 'failed', error };
  }
}

type PreparedGroup = { readonly calls: readonly PreparedCall[]; readonly halt?: Halt };

function* answerAll(
  calls: readonly ToolCallData[],
  text: string,
  using: Preparation,
): Generator<AgentEvent, PreparedGroup & { readonly calls: readonly WithheldCall[] }, void> {
  yield* announce(calls, using);
  return { calls: calls.map((call) => withhold(call, text, using)) };
}

/** Reports that the calls are looked at. Those that an earlier attempt finished are over. */
function* announce(calls: readonly ToolCallData[], { open }: Preparation): Generator<AgentEvent, void, void> {
  for (const call of calls)
    if (open?.states.get(call.id)?.kind !== 'done') yield { type: 'tool_execution_start', call };
}

/** Prepares the calls in source order; a halt also withdraws calls that are prepared but not started. */
async function* prepareGroup(
  calls: readonly ToolCallData[],
  batch: ToolBatch,
): AsyncGenerator<AgentEvent, PreparedGroup, void> {
  const prepared: PreparedCall[] = [];
  let halt: Halt | undefined;
  for (const call of calls) {
    if (halt !== undefined) break;
    yield* announce([call], batch);
    const next = await prepareCall(call, batch);
    prepared.push(next);
    if (next.kind === 'answered' || next.kind === 'done') halt = next.halt;
  }
  if (halt !== undefined) {
    const rest = yield* answerAll(calls.slice(prepared.length), resultText.cancelled, batch);
    return { calls: [...withdraw(prepared, resultText.cancelled, batch), ...rest.calls], halt };
  }
  const { scope } = batch;
  return { calls: scope.signal.aborted ? withdraw(prepared, cutText(scope.abortReason()), batch) : prepared };
}

function withdraw(
  prepared: readonly PreparedCall[],
  text: string,
  using: Preparation,
): readonly PreparedCall[] {
  return prepared.map((each) =>
    each.kind === 'ready' || each.kind === 'asked' ? withhold(each.call, text, using) : each,
  );
}

async function* runGroup(
  prepared: readonly PreparedCall[],
  batch: ToolBatch,
): AsyncGenerator<
  AgentEvent,
  {
    readonly results: ReadonlyMap<string, AgentMessage>;
    /** A call waits for something outside: nothing else of the batch begins. */
    readonly isParked: boolean;
  },
  void
> {
  const results = yield* emitAnswered(prepared);
  const asked = prepared.filter((each) => each.kind === 'asked');
  if (asked.length > 0) {
    for (const { question } of asked) yield { type: 'tool_execution_asked', question };
    // Nothing starts before all of them are approved; then the others are prepared again.
    const ended = prepared.filter(({ kind }) => kind !== 'asked' && kind !== 'ready');
    return { results: yield* emitResults(ended, results, batch.config), isParked: true };
  }
  const ready = prepared.filter((each) => each.kind === 'ready');
  for (const { call } of ready) yield { type: 'tool_execution_prepared', call };
  const parked = new Set<string>();
  for (const [callId, end] of yield* execute(ready, batch)) {
    if (end.kind === 'parked') parked.add(callId);
    else results.set(callId, end.result);
  }
  const ended = prepared.filter(({ call }) => !parked.has(call.id));
  return { results: yield* emitResults(ended, results, batch.config), isParked: parked.size > 0 };
}

type Results = Map<string, ToolResult>;

async function* emitAnswered(prepared: readonly PreparedCall[]): AsyncGenerator<AgentEvent, Results, void> {
  const results: Results = new Map();
  for (const each of prepared) {
    if (each.kind !== 'answered') continue;
    results.set(each.call.id, each.result);
    yield endEvent(each.call, each.result);
  }
  return results;
}

/**
 * Starts all calls and passes on their events as they arrive. Parked calls are reported last: if the run is cut short
 * before that, they get a result like any other call.
 */
async function* execute(
  ready: readonly ReadyCall[],
  { config, scope }: ToolBatch,
): AsyncGenerator<AgentEvent, ReadonlyMap<string, CallEnd>, void> {
  const ends = new Map<string, CallEnd>();
  const feed = createEventFeed<AgentEvent>();
  const onUpdate = (callId: string, text: string) =>
    feed.push({ type: 'tool_execution_update', callId, text });
  const running = ready.map(async (each) => {
    const end = await executeCall(each, { config, scope, onUpdate });
    ends.set(each.call.id, end);
    feed.push(end.kind === 'parked' ? parkedEvent(each.call, end) : endEvent(each.call, end.result));
  });

  for (let open = ready.length; open > 0; ) {
    for (const event of await feed.take()) {
      const isParked = event.type === 'tool_execution_parked';
      if (isParked || event.type === 'tool_execution_end') open -= 1;
      if (!isParked) yield event;
    }
  }
  await Promise.all(running);
  for (const { call } of ready) {
    const end = ends.get(call.id);
    if (end?.kind !== 'parked') continue;
    if (!scope.signal.aborted) {
      yield parkedEvent(call, end);
      continue;
    }
    const result = errorResult(begunText(cutText(scope.abortReason())));
    ends.set(call.id, { kind: 'result', result });
    yield endEvent(call, result);
  }
  return ends;
}

function parkedEvent({ id, name }: ToolCallData, { kind: _, ...parked }: ParkedCall): AgentEvent {
  return { type: 'tool_execution_parked', callId: id, name, ...parked };
}

function endEvent({ id, name }: ToolCallData, { output, isError }: ToolResult): AgentEvent {
  return { type: 'tool_execution_end', callId: id, name, result: output, isError };
}

async function* emitResults(
  prepared: readonly PreparedCall[],
  results: ReadonlyMap<string, ToolResult>,
  config: AgentLoopConfig,
): AsyncGenerator<AgentEvent, ReadonlyMap<string, AgentMessage>, void> {
  const messages = new Map<string, AgentMessage>();
  for (const each of prepared) {
    const { call } = each;
    if (each.kind === 'done') {
      messages.set(call.id, each.message);
      continue;
    }
    const result = results.get(call.id) ?? errorResult(resultText.cancelled);
    const message = resultMessage(call, result, { id: config.newId(), time: config.clock.now() });
    messages.set(call.id, message);
    yield { type: 'message_start', message };
    yield { type: 'message_end', message };
  }
  return messages;
}

/** Merges the events of several running tools into one sequence that a generator can pass on. */
interface EventFeed<T> {
  push(item: T): void;
  /** Returns everything pushed since the last call; waits until there is something. One reader only. */
  take(): Promise<readonly T[]>;
}

function createEventFeed<T>(): EventFeed<T> {
  let items: T[] = [];
  let wake: (() => void) | undefined;

  return {
    push: (item) => {
      items.push(item);
      wake?.();
    },
    take: async () => {
      if (items.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
      }
      const taken = items;
      items = [];
      return taken;
    },
  };
}

type ReadyCall = Extract<PreparedCall, { readonly kind: 'ready' }>;

type Execution = {
  readonly config: AgentLoopConfig;
  readonly scope: RunScope;
  readonly onUpdate: (callId: string, text: string) => void;
};

/** How long a tool may take to stop after an abort; a result returned within this time still counts. */
const stopGraceMs = 1000;
/** Longest reason of a parked call. */
const maxReasonBytes = 200;

type CallEnd =
  | { readonly kind: 'result'; readonly result: ToolResult }
  /** No result yet: it arrives from outside later and bypasses `afterToolCall`. */
  | ParkedCall;

/** A call that waits for an outside result, for at most `waitMs`. */
type ParkedCall = {
  readonly kind: 'parked';
  readonly reason: string;
  readonly waitMs?: number;
};

/** Runs one tool. Never throws, and outlasts an abort by at most `stopGraceMs` per step. */
async function executeCall(ready: ReadyCall, execution: Execution): Promise<CallEnd> {
  if (execution.scope.signal.aborted) return ended(cutResult(ready, execution));
  try {
    const end = await runTool(ready, execution);
    if (end.kind === 'parked') return end;
    return ended(boundResult(await passHook(ready, boundResult(end.result), execution)));
  } catch {
    // A plugin's tool or hook may return anything.
    return ended(errorResult('the tool ran, but its result is unreadable'));
  }
}

/** Interprets a tool's output: a result, or a request to wait, which only a durable tool may make. */
function callEndOf(output: ToolOutput | ParkRequest, tool: Pick<Tool, 'replay'>): CallEnd {
  if (typeof output !== 'object' || output === null || !('parked' in output)) {
    return ended({ output, isError: false });
  }
  if (tool.replay !== 'durable') return ended(errorResult(resultText.mayNotWait));
  const { reason, waitMs = 0 } = output.parked;
  const parked = { kind: 'parked', reason: fitBytes(cleanText(reason), maxReasonBytes) } as const;
  return waitMs > 0 ? { ...parked, waitMs } : parked;
}

function ended(result: ToolResult): CallEnd {
  return { kind: 'result', result };
}

async function runTool(ready: ReadyCall, execution: Execution): Promise<CallEnd> {
  const { call, tool, input } = ready;
  const { config, scope, onUpdate } = execution;
  let isRunning = true;
  const ctx = {
    callId: call.id,
    run: config.run,
    isRepeat: ready.hasBegun,
    signal: scope.signal,
    update: (text: string) => {
      // A hook may remove a secret from the result, and doesn't see this.
      if (isRunning && !config.afterToolCall) onUpdate(call.id, cleanText(text));
    },
  };
  const grace = { clock: config.clock, graceMs: stopGraceMs };
  const settled = await settleWithGrace(() => tool.execute(input, ctx), scope.signal, grace);
  isRunning = false;

  if (settled.kind === 'done') return callEndOf(settled.value, tool);
  if (settled.kind === 'aborted') return ended(errorResult(begunText(cutText(scope.abortReason()))));
  if (scope.signal.aborted) return ended(cutResult(ready, execution));
  return ended(errorResult(toolErrorText(settled.error)));
}

/** Returns the result of a call that the end of the run stopped or kept from running. */
function cutResult({ hasBegun }: ReadyCall, { scope }: Execution): ToolResult {
  const text = cutText(scope.abortReason());
  return errorResult(hasBegun ? begunText(text) : text);
}

/** Returns the tool's own error message if it has one, since that is written for the model. */
function toolErrorText(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : faultText(error);
}

/** A failing hook withholds the result, because its purpose may have been to remove a secret. */
async function passHook(ready: ReadyCall, result: ToolResult, execution: Execution): Promise<ToolResult> {
  const { config, scope } = execution;
  const { afterToolCall } = config;
  if (afterToolCall === undefined) return result;
  const grace = { clock: config.clock, graceMs: stopGraceMs };
  const settled = await settleWithGrace(() => afterToolCall(ready.call, result), scope.signal, grace);
  if (settled.kind === 'done') return settled.value;
  return errorResult(resultText.withheld);
}
