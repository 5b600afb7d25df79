import type { Clock } from '#contracts/clock.ts';
import type { TranscriptId } from '#contracts/ids.ts';
import type { AgentMessage, ToolCallData } from '#contracts/message.ts';
import type { LlmMessage, ModelEvent, ModelRequest, ReasoningLevel, SystemBlock } from '#contracts/model.ts';
import type { Tool, ToolOutput, ToolRun } from '#contracts/tool.ts';
import type { Mark } from './repair-history.ts';

/** Input of the loop. */
export type AgentContext = {
  readonly system: readonly SystemBlock[];
  readonly messages: readonly AgentMessage[];
  readonly tools: readonly Tool[];
};

/** Everything the loop may ask of its environment. It doesn't know about Redis, the store or channels. */
export type AgentLoopConfig = {
  readonly run: ToolRun;
  readonly clock: Clock;
  readonly newId: () => TranscriptId;
  readonly limits: LoopLimits;
  readonly toolExecution: 'auto' | 'sequential' | 'parallel';
  /** Decides about the unstarted calls of a sequential batch when a steer arrives. */
  readonly steerTail: 'skip' | 'finish';
  /** Longest answer of one call, tokens. */
  readonly maxTokens: number;
  readonly reasoning: ReasoningLevel;
  /** Never throws: failures are events. `apiKey`: what `getApiKey` has returned for this call. */
  readonly stream: (request: ModelRequest, signal: AbortSignal, apiKey?: string) => AsyncIterable<ModelEvent>;
  /** Called before each model call, since keys may expire within a run. Throwing fails the call. */
  readonly getApiKey?: () => Promise<string | undefined>;
  /** Converts the transcript into the provider's shape. Pure. */
  readonly convertToLlm: (messages: readonly AgentMessage[]) => Promise<readonly LlmMessage[]>;
  /** Selects the part of the transcript that this request shows; `tokens` is its size. The transcript isn't changed. */
  readonly transformContext?: (
    messages: readonly AgentMessage[],
    tokens: number,
  ) => Promise<readonly AgentMessage[]>;
  /** Says whether an answer that should be visible would show a person nothing: the model is then asked once more. */
  readonly isEmptyAnswer?: (text: string) => boolean;
  /** Says whether a person may have seen part of the answer being written. If absent, they may have seen all of it. */
  readonly isShown?: () => boolean;
  /** Called when a model has said nothing for a minute. Never throws. */
  readonly onQuiet?: () => void;
  /** Records that a request was rejected for these messages, before one without them is made. Throwing ends the run. */
  readonly keepMarks?: (marks: readonly Mark[]) => Promise<void>;
  /** Messages that arrived for the active run; each is returned once. Throwing ends the run. */
  readonly getSteeringMessages: () => Promise<readonly AgentMessage[]>;
  /**
   * Calls `listener` whenever a message may have arrived, until the returned function is called. Before the model has
   * said anything visible, the loop then takes such messages, gives up the call and asks again with them. If absent,
   * they wait for the next boundary.
   */
  readonly onArrival?: (listener: () => void) => () => void;
  /** Messages for which a call is given up; default: those that `getSteeringMessages` returns. */
  readonly getJoiningMessages?: () => Promise<readonly AgentMessage[]>;
  /** Called when the run would end; the messages it returns extend the run. */
  readonly getFollowUpMessages: () => Promise<readonly AgentMessage[]>;
  /** Called around each turn, in this order. */
  readonly middleware?: readonly TurnMiddleware[];
  /** Tokens of the session's last call, including its answer. If absent, the context's size is estimated. */
  readonly contextTokens?: number;
  /** Replaces the older part of the stored history with a summary. On `failed` or a throw, nothing has changed. */
  readonly compact?: (reason: CompactionReason, signal: AbortSignal) => Promise<'compacted' | 'failed'>;
  /** Returns the stored context after a compaction. */
  readonly reloadMessages?: () => Promise<readonly AgentMessage[]>;
  /**
   * May block a call with a reason the model reads, replace its arguments, which are then checked again, or have a
   * person asked. Throwing blocks it too (fails closed). Not called again for a call that a person has approved.
   */
  readonly beforeToolCall?: (call: ToolCallData, input: unknown) => Promise<ToolVerdict>;
  /** May rewrite a result. */
  readonly afterToolCall?: (call: ToolCallData, result: ToolResult) => Promise<ToolResult>;
  /** Decides whether this call may run; a denied call ends the batch (spec 5). */
  readonly permit?: (request: PermitRequest) => Promise<Permit>;
};

/** A call that is about to run, with its checked arguments. */
export type PermitRequest = {
  readonly call: ToolCallData;
  readonly tool: Tool;
  readonly input: unknown;
  /** Returns the hash of the call's description. */
  digest(): string;
  /** A person has approved exactly this call: what remains is whether that may still count. */
  readonly isApproved: boolean;
};

/** `revoked`: the person who caused the call has lost the right to it. */
export type Permit = 'allowed' | 'ask' | 'denied' | 'revoked';

/** Limits of one run; times in ms. */
export type LoopLimits = {
  readonly runTimeoutMs: number;
  /** Longest silence of a model stream. */
  readonly modelIdleMs: number;
  readonly turns: number;
  /** How often an identical call may be made in a row. */
  readonly repeatedCalls: number;
};

/** A turn as middleware sees it. */
export type TurnState = {
  readonly turn: number;
  readonly messages: readonly AgentMessage[];
  readonly stats: TurnStats;
};

export type TurnStats = {
  /** Tokens of the next request: the last call's own count, plus an estimate of everything newer. */
  readonly contextTokens: number;
  /** Cost of this attempt's model calls so far, micro-dollars. */
  readonly cost: number;
};

/** `compact` requests a summary of the older part of the context before the next model call; `stop` ends the run. */
export type TurnVerdict =
  | { readonly kind: 'continue' }
  | { readonly kind: 'compact'; readonly oldTokens: number; readonly threshold: number }
  | { readonly kind: 'stop'; readonly detail: string };

/** Checks around each turn. Throwing ends the run. */
export type TurnMiddleware = {
  beforeTurn?(turn: TurnState): Promise<TurnVerdict>;
  /** The turn's results are in its messages; the turn counts as finished whatever the verdict. */
  afterTurn?(turn: TurnState): Promise<TurnVerdict>;
};

/** Why a context is compacted: it exceeds its threshold, or the provider rejected it as too long. */
export type CompactionReason = 'threshold' | 'overflow';

/** `input`: the arguments to use in place of those checked; absent: they stay. */
export type ToolVerdict =
  | { readonly kind: 'go'; readonly input?: unknown }
  | { readonly kind: 'ask'; readonly input?: unknown }
  | { readonly kind: 'block'; readonly reason: string };

/** A call's result in the loop. */
export type ToolResult = { readonly output: ToolOutput; readonly isError: boolean };
