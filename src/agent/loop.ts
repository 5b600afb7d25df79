// The agent loop: a plain generator over data. The outer loop handles follow-ups; the inner loop runs turns while the
// model waits for results or messages wait for the model. It doesn't know about Redis, the store or channels.

import type { AgentEvent } from '#contracts/agent-event.ts';
import { ParleyError } from '#contracts/errors.ts';
import { type AgentMessage, toolCallsOf } from '#contracts/message.ts';
import { isCounted } from './call-pairs.ts';
import { Conversation } from './conversation.ts';
import { faultText } from './fault-text.ts';
import { ContextSize } from './fit-context.ts';
import type { AgentContext, AgentLoopConfig } from './loop-config.ts';
import { createLoopGuard } from './loop-guard.ts';
import type { RunEnd } from './model-turn.ts';
import { toolSpecs } from './prepare-call.ts';
import { AbortedError } from './race-abort.ts';
import { type CallEntry, findResumption, noResumption, type Resumption } from './resumption.ts';
import { openRunScope, type Run, type RunScope } from './run-scope.ts';
import { finishBatch, runTurn, type TurnOutcome } from './turn.ts';

/** The events of a run; the return value is the messages that the run has added. */
export type AgentEvents = AsyncGenerator<AgentEvent, readonly AgentMessage[], void>;

/**
 * Starts a run with new messages. The consumer's handling of an event is a barrier: the loop continues only when the
 * next event is requested. `agent_end` comes last and exactly once, even if something inside throws. A consumer that
 * stops early (break, return, throw) aborts what is running. To end a run that is waiting for the model or a tool,
 * abort the signal: a generator can't be exited while it waits.
 */
export function agentLoop(
  prompts: readonly AgentMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  signal: AbortSignal,
): AgentEvents {
  return runAgentLoop(context, { config, signal, prompts, resumption: noResumption });
}

/**
 * Starts from a context whose last message waits for the model, after a retry or a crash. An answer cut off by a crash
 * doesn't count. Throws ParleyError `invalid_input` immediately if the context is empty or ends with an assistant
 * message that counts.
 */
export function agentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  signal: AbortSignal,
): AgentEvents {
  assertWaitsForModel(context);
  return runAgentLoop(context, { config, signal, prompts: [], resumption: noResumption });
}

/**
 * Resumes a run after a crash, a hand-over or a wait. `entries` are all the calls it has made. The batch of its last
 * message is finished first, as a turn without a model call, and the loop guard and the turn limit account for what
 * came before. Throws like `agentLoopContinue` if the context ends with any other assistant message.
 */
export function agentLoopResume(
  context: AgentContext,
  entries: readonly CallEntry[],
  config: AgentLoopConfig,
  signal: AbortSignal,
): AgentEvents {
  const resumption = findResumption(context.messages, entries);
  if (resumption.batch === undefined) assertWaitsForModel(context);
  return runAgentLoop(context, { config, signal, prompts: [], resumption });
}

function assertWaitsForModel({ messages }: AgentContext): void {
  const last = messages.findLast(isCounted);
  if (last !== undefined && last.role !== 'assistant') return;
  const found = last === undefined ? 'an empty context' : `assistant message ${last.id}`;
  throw new ParleyError('invalid_input', `a run can't continue from ${found}; start it with a prompt`);
}

async function* runAgentLoop(
  context: AgentContext,
  options: {
    readonly config: AgentLoopConfig;
    readonly signal: AbortSignal;
    readonly prompts: readonly AgentMessage[];
    readonly resumption: Resumption;
  },
): AgentEvents {
  const { config, signal, prompts, resumption } = options;
  const scope = openRunScope(signal, config.clock, config.limits.runTimeoutMs);
  const conversation = new Conversation(context.messages);
  let end: RunEnd;
  try {
    yield { type: 'agent_start' };
    const run: Run = {
      config,
      scope,
      conversation,
      size: new ContextSize(config.contextTokens),
      cost: 0,
      dueCompaction: undefined,
      system: context.system,
      tools: new Map(context.tools.map((tool) => [tool.name, tool])),
      specs: toolSpecs(context.tools),
      guard: createLoopGuard(config.limits.repeatedCalls),
      callIds: new Set([...shownCallIds(context), ...resumption.callIds]),
    };
    for (const call of resumption.earlier) run.guard.admit(call);
    end = yield* runTurns(run, prompts, resumption);
  } catch (error) {
    end = endOfFault(error, scope);
  } finally {
    scope.close();
  }
  yield { type: 'agent_end', messages: conversation.added, ...end };
  return conversation.added;
}

function shownCallIds({ messages }: AgentContext): readonly string[] {
  return messages.flatMap(({ parts }) => toolCallsOf(parts).map(({ id }) => id));
}

async function* runTurns(
  run: Run,
  prompts: readonly AgentMessage[],
  { turns, batch }: Resumption,
): AsyncGenerator<AgentEvent, RunEnd, void> {
  const { config, scope } = run;
  const first = turns + 1;
  let pending: readonly AgentMessage[] = [];
  let tools: 'offered' | 'withheld' = 'offered';
  for (let turn = first; ; turn += 1) {
    const isFirst = turn === first;
    const outcome: TurnOutcome =
      isFirst && batch !== undefined
        ? yield* finishBatch(run, turn, batch)
        : yield* runTurn(run, { turn, isFirst, prompts: isFirst ? prompts : [], pending, tools });
    if (outcome.kind === 'ended') return outcome.end;
    const mayKeepLane = turn < config.limits.turns;
    pending = outcome.pending;
    if (!outcome.goesOn && pending.length === 0 && mayKeepLane && !scope.signal.aborted) {
      pending = await config.getFollowUpMessages();
    }
    if (!outcome.goesOn && pending.length === 0) return { reason: 'natural' };
    // After a denied call the person still gets an answer, one turn over the limit if necessary.
    if (!mayKeepLane && !outcome.wasDenied) return { reason: 'turn_limit' };
    tools = outcome.wasDenied ? 'withheld' : 'offered';
  }
}

/** A fault caused by an abort counts as that abort. */
function endOfFault(error: unknown, scope: RunScope): RunEnd {
  const cut = scope.abortReason();
  if (cut !== undefined) return { reason: cut };
  if (error instanceof AbortedError) return { reason: 'aborted' };
  return { reason: 'failed', detail: faultText(error) };
}
