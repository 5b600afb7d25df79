// The agent loop: a plain generator over data. Outer loop: follow-ups; inner loop: turns while the model
// waits for results or messages wait for the model. It knows no Redis, store or channel.

import type { AgentEvent } from '#contracts/agent-event.ts';
import { ParleyError } from '#contracts/errors.ts';
import { type AgentMessage, toolCallsOf } from '#contracts/message.ts';
import { AbortedError } from './abortable.ts';
import { isCounted } from './call-pairs.ts';
import { Conversation } from './conversation.ts';
import { faultText } from './fault-text.ts';
import type { AgentContext, AgentLoopConfig } from './loop-config.ts';
import { createLoopGuard } from './loop-guard.ts';
import type { RunEnd } from './model-turn.ts';
import { openRunScope, type RunScope } from './run-scope.ts';
import { toolSpecs } from './tool-specs.ts';
import { type Run, runTurn, type TurnOutcome } from './turn.ts';

/** Events of a run; its return value is the messages the run has added. */
export type AgentEvents = AsyncGenerator<AgentEvent, readonly AgentMessage[], void>;

/**
 * Starts a run with new messages. The consumer's handling of an event is a barrier: the loop goes on when
 * the next one is asked for. `agent_end` comes last and once, also when something inside throws. A consumer
 * that stops early (break, return, throw) aborts what is running; to end a run that waits for the model or
 * a tool, abort the signal: a generator cannot be left while it waits.
 */
export function agentLoop(
  prompts: readonly AgentMessage[],
  context: AgentContext,
  config: AgentLoopConfig,
  signal: AbortSignal,
): AgentEvents {
  return drive(prompts, context, { config, signal });
}

/**
 * Resumes from a context whose last message waits for the model: after a retry or a crash. An answer
 * that a crash cut off does not count. Throws ParleyError `invalid_input` at once when the context ends
 * with an assistant message that stands, or is empty.
 */
export function agentLoopContinue(
  context: AgentContext,
  config: AgentLoopConfig,
  signal: AbortSignal,
): AgentEvents {
  const last = context.messages.findLast(isCounted);
  if (last === undefined || last.role === 'assistant') {
    const found = last === undefined ? 'an empty context' : `assistant message ${last.id}`;
    throw new ParleyError('invalid_input', `a run cannot go on from ${found}; start it with a prompt`);
  }
  return drive([], context, { config, signal });
}

type Surroundings = { readonly config: AgentLoopConfig; readonly signal: AbortSignal };

async function* drive(
  prompts: readonly AgentMessage[],
  context: AgentContext,
  { config, signal }: Surroundings,
): AgentEvents {
  const scope = openRunScope(signal, config.clock, config.limits.runTimeoutMs);
  const conversation = new Conversation(context.messages);
  let end: RunEnd;
  try {
    yield { type: 'agent_start' };
    const run: Run = {
      config,
      scope,
      conversation,
      system: context.system,
      tools: new Map(context.tools.map((tool) => [tool.name, tool])),
      specs: toolSpecs(context.tools),
      guard: createLoopGuard(config.limits.repeatedCalls),
      callIds: new Set(context.messages.flatMap(({ parts }) => toolCallsOf(parts).map(({ id }) => id))),
    };
    end = yield* runTurns(run, prompts);
  } catch (error) {
    end = endOfFault(error, scope);
  } finally {
    scope.close();
  }
  yield { type: 'agent_end', messages: conversation.added, ...end };
  return conversation.added;
}

async function* runTurns(
  run: Run,
  prompts: readonly AgentMessage[],
): AsyncGenerator<AgentEvent, RunEnd, void> {
  const { config, scope } = run;
  let pending: readonly AgentMessage[] = [];
  let tools: 'offered' | 'withheld' = 'offered';
  for (let turn = 1; ; turn += 1) {
    const outcome: TurnOutcome = yield* runTurn(run, {
      turn,
      prompts: turn === 1 ? prompts : [],
      pending,
      tools,
    });
    if (outcome.kind === 'ended') return outcome.end;
    const mayGoOn = turn < config.limits.turns;
    pending = outcome.pending;
    if (!outcome.goesOn && pending.length === 0 && mayGoOn && !scope.signal.aborted) {
      pending = await config.getFollowUpMessages();
    }
    if (!outcome.goesOn && pending.length === 0) return { reason: 'natural' };
    // A denied call is still answered to the person, one turn over the limit if need be.
    if (!mayGoOn && !outcome.wasDenied) return { reason: 'turn_limit' };
    tools = outcome.wasDenied ? 'withheld' : 'offered';
  }
}

/** A fault that an abort brought about is that abort. */
function endOfFault(error: unknown, scope: RunScope): RunEnd {
  const cut = scope.cut();
  if (cut !== undefined) return { reason: cut };
  if (error instanceof AbortedError) return { reason: 'aborted' };
  return { reason: 'failed', detail: faultText(error) };
}
