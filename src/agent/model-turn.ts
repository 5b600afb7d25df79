// One answer of the model: message_start, an update per stream event, message_end. It always ends with a message that
// has a finish part, even if the stream breaks off or the run is cut short.

import { isBlank } from '#channel-kit/clean-text.ts';
import type { AgentEvent, EndReason } from '#contracts/agent-event.ts';
import {
  type AgentMessage,
  type FinishReason,
  type Source,
  textOf,
  toolCallsOf,
} from '#contracts/message.ts';
import type { ModelEvent, ModelFailure, ModelRequest, Usage } from '#contracts/model.ts';
import { AssistantDraft } from './assistant-draft.ts';
import { unitsPerToken } from './fit-context.ts';
import type { AgentLoopConfig } from './loop-config.ts';
import { openModelStream } from './model-stream.ts';
import type { AbortReason, RunScope } from './run-scope.ts';

export type RunEnd = { readonly reason: EndReason; readonly detail?: string };

export type Answer = {
  readonly message: AgentMessage;
  readonly finish: FinishReason;
  /** Tokens of the call that produced it; absent when it broke off. */
  readonly usage?: Usage;
  /** Cost of its calls, micro-dollars; absent where none was counted. */
  readonly cost?: number | undefined;
  /** Set when the answer ends the run: no tools run, nothing is taken from the queue. */
  readonly end?: RunEnd;
};

export type ModelTurn = {
  readonly config: AgentLoopConfig;
  readonly scope: RunScope;
  /** Ids of the calls in the transcript; this answer's ids are added. */
  readonly callIds: Set<string>;
  /** Returns the request to make instead of one that was rejected because of its messages, if there is one. */
  readonly recover?: (refused: RefusedRequest) => AsyncGenerator<AgentEvent, ModelRequest | undefined, void>;
  /** Adds messages that arrived before the answer's first word, and returns the request that contains them. */
  readonly join?: (messages: readonly AgentMessage[]) => AsyncGenerator<AgentEvent, ModelRequest, void>;
};

export type RefusedRequest = { readonly request: ModelRequest; readonly failure: ModelFailure };

/** How often an answer that yielded nothing is requested again, and how often its request is rebuilt. */
const maxAnew = 1;
const maxRecoveries = { unsendable: 4, overflow: 1 };
/** How many calls an answer gives up for messages that arrive before its first word. */
const maxJoins = 3;

export async function* streamAnswer(
  first: ModelRequest,
  turn: ModelTurn,
): AsyncGenerator<AgentEvent, Answer, void> {
  const { clock, newId } = turn.config;
  const [id, createdAt] = [newId(), clock.now()];
  let cost: number | undefined;
  let anew = 0;
  let joins = 0;
  const recoveries = { unsendable: 0, overflow: 0 };
  let draft = new AssistantDraft(id, createdAt, turn.callIds);
  yield { type: 'message_start', message: draft.snapshot() };
  for (let request = first; ; ) {
    let ending = withFixedSize(
      yield* readAnswer(request, draft, { ...turn, mayJoin: joins < maxJoins }),
      request,
    );
    if (ending.spent !== undefined) cost = (cost ?? 0) + ending.spent.cost;
    let next: ModelRequest | undefined;
    if (ending.joined !== undefined && turn.join !== undefined) {
      joins += 1;
      next = yield* turn.join(ending.joined);
    } else if (anew < maxAnew && cameToNothing(ending, draft, turn)) [next, anew] = [request, anew + 1];
    else {
      next = yield* recoverFrom(ending, { request, draft, recoveries }, turn);
      if (next === undefined && turn.scope.signal.aborted) ending = endingOfCut(turn.scope.abortReason());
    }
    if (next === undefined) {
      const answer = yield* finishAnswer(draft, { ...ending, cost }, turn);
      return ending.spent === undefined ? answer : { ...answer, usage: ending.spent.usage };
    }
    request = next;
    draft = new AssistantDraft(id, createdAt, turn.callIds);
    const event = { type: 'warning', kind: 'anew', detail: detailOf(ending), waitMs: 0 } as const;
    yield { type: 'message_update', message: draft.snapshot(), event };
  }
}

/** Marks an overflow that no summary would prevent: instructions and tools alone exceed the window that was named. */
function withFixedSize(ending: TurnEnd, { system, tools }: ModelRequest): TurnEnd {
  const { failure } = ending;
  if (failure?.kind !== 'overflow' || failure.window === undefined) return ending;
  const length = system.reduce((sum, { text }) => sum + text.length, JSON.stringify(tools).length);
  const fixedTokens = Math.ceil(length / unitsPerToken);
  return fixedTokens < failure.window ? ending : { ...ending, failure: { ...failure, fixedTokens } };
}

type Recoveries = Record<keyof typeof maxRecoveries, number>;

async function* recoverFrom(
  { failure }: TurnEnd,
  { request, draft, recoveries }: Attempt,
  turn: ModelTurn,
): AsyncGenerator<AgentEvent, ModelRequest | undefined, void> {
  if (failure?.kind !== 'unsendable' && failure?.kind !== 'overflow') return undefined;
  if (failure.fixedTokens !== undefined) return undefined;
  if (!draft.isUntouched || recoveries[failure.kind] >= maxRecoveries[failure.kind]) return undefined;
  recoveries[failure.kind] += 1;
  return turn.recover && (yield* turn.recover({ request, failure }));
}

type Attempt = {
  readonly request: ModelRequest;
  readonly draft: AssistantDraft;
  /** The answer's recoveries so far, by kind; incremented with each. */
  readonly recoveries: Recoveries;
};

/** Reads one stream to its end. */
async function* readAnswer(
  request: ModelRequest,
  draft: AssistantDraft,
  { mayJoin, ...turn }: ModelTurn & { readonly mayJoin: boolean },
): AsyncGenerator<AgentEvent, TurnEnd, void> {
  const stream = openModelStream(request, turn);
  const { config, join } = turn;
  try {
    for (;;) {
      const isHidden = join !== undefined && mayJoin && draft.isHidden && config.isShown?.() === false;
      const step = await (isHidden ? stream.nextOrArrival() : stream.next());
      if (step.kind === 'cut') return endingOfCut(turn.scope.abortReason());
      if (step.kind === 'arrival') {
        const messages = await (config.getJoiningMessages ?? config.getSteeringMessages)();
        if (messages.length > 0) return { finish: 'end_turn', joined: messages };
        continue;
      }
      const ending = endingOf(step.event, turn.scope);
      if (step.event.type !== 'complete') {
        draft.write(step.event);
        // A failure is reported only once it's clear that the answer won't be requested again.
        if (step.event.type !== 'error')
          yield { type: 'message_update', message: draft.snapshot(), event: step.event };
      }
      if (ending !== undefined) return ending;
      if (draft.isFull) return { finish: 'max_tokens' };
    }
  } finally {
    stream.close();
  }
}

async function* finishAnswer(
  draft: AssistantDraft,
  { finish: said, cost, model, sources, failure, end }: TurnEnd & { readonly cost: number | undefined },
  { config }: ModelTurn,
): AsyncGenerator<AgentEvent, Answer, void> {
  if (failure !== undefined) {
    const event: ModelEvent = { type: 'error', failure };
    yield { type: 'message_update', message: draft.snapshot(), event };
  }
  const finish = finishOf(said, draft.snapshot());
  const stamp = {
    time: config.clock.now(),
    ...(model === undefined ? {} : { model }),
    ...(sources && { sources }),
  };
  const message = draft.finish(finish, stamp);
  yield { type: 'message_end', message, ...(cost === undefined ? {} : { cost }) };
  return { message, finish, cost, ...(end === undefined ? {} : { end }) };
}

/**
 * Says whether an answer yielded nothing: it is complete but has neither text nor calls, or its stream broke off before
 * a call or a word that a person may have seen. Streams that broke before sending anything were already retried by the
 * provider.
 */
function cameToNothing(
  { finish, failure }: TurnEnd,
  draft: AssistantDraft,
  { config, scope }: ModelTurn,
): boolean {
  const { parts } = draft.snapshot();
  if (scope.signal.aborted || toolCallsOf(parts).length > 0) return false;
  const text = textOf(parts);
  const isEmpty = config.isEmptyAnswer?.(text) ?? false;
  if (failure === undefined) return isEmpty && (finish === 'end_turn' || finish === 'tool_use');
  const isUnseen = isEmpty || isBlank(text) || config.isShown?.() === false;
  return isUnseen && failure.retry?.kind === 'later' && !draft.isUntouched;
}

function detailOf({ failure, joined }: TurnEnd): string {
  if (joined !== undefined) return 'another message arrived before its first word';
  return failure === undefined ? 'the answer was empty' : `${failure.kind}: ${failure.detail}`;
}

/** Some providers report `end_turn` along with calls, or `tool_use` without any: the answer's content decides. */
function finishOf(said: FinishReason, { parts }: AgentMessage): FinishReason {
  if (said !== 'end_turn' && said !== 'tool_use') return said;
  return toolCallsOf(parts).length > 0 ? 'tool_use' : 'end_turn';
}

type TurnEnd = {
  readonly finish: FinishReason;
  /** Usage of the call, and its cost in micro-dollars. */
  readonly spent?: { readonly usage: Usage; readonly cost: number };
  readonly model?: string;
  readonly sources?: readonly Source[];
  readonly failure?: ModelFailure;
  readonly end?: RunEnd;
  /** Messages for which the call was given up; nothing has taken them in yet. */
  readonly joined?: readonly AgentMessage[];
};

function endingOf(event: ModelEvent, scope: RunScope): TurnEnd | undefined {
  if (event.type === 'error') return endingOfFailure(event.failure, scope);
  if (event.type !== 'complete') return undefined;
  const { finish, usage, cost, model, sources } = event;
  const spent = { usage, cost };
  if (finish === 'end_turn' || finish === 'tool_use' || finish === 'max_tokens') {
    return { finish, spent, model, ...(sources && { sources }) };
  }
  return { finish: 'error', spent, model, end: { reason: 'model_error', detail: `finish reason ${finish}` } };
}

function endingOfFailure(failure: ModelFailure, scope: RunScope): TurnEnd {
  const { kind, detail } = failure;
  if (kind === 'aborted') return { ...endingOfCut(scope.abortReason()), failure };
  return { finish: 'error', failure, end: { reason: 'model_error', detail: `${kind}: ${detail}` } };
}

function endingOfCut(cut: AbortReason | undefined): TurnEnd {
  const reason = cut ?? 'aborted';
  return { finish: finishOfCut(reason), end: { reason } };
}

/** Returns the finish reason for the assistant message of a run that was cut short. */
export function finishOfCut(cut: AbortReason): FinishReason {
  return cut === 'aborted' ? 'canceled' : 'timeout';
}
