import type { Clock } from '#contracts/clock.ts';
import type { TranscriptId } from '#contracts/ids.ts';
import type { AgentMessage, ToolCallData } from '#contracts/message.ts';
import type { LlmMessage, ModelEvent, ModelRequest, ReasoningLevel, SystemBlock } from '#contracts/model.ts';
import type { Sections } from '#contracts/section.ts';
import type { Tool, ToolOutput, ToolRun } from '#contracts/tool.ts';
import type { Mark } from './mend-history.ts';

/** Input of the loop. */
export type AgentContext = {
  readonly system: readonly SystemBlock[];
  readonly messages: readonly AgentMessage[];
  readonly tools: readonly Tool[];
};

/** Everything the loop may ask of its surroundings. It knows no Redis, store or channel. */
export type AgentLoopConfig = {
  readonly run: ToolRun;
  readonly clock: Clock;
  /** Times what is done in one piece with what a model or a tool gave. */
  readonly sections?: Sections;
  readonly newId: () => TranscriptId;
  readonly limits: LoopLimits;
  readonly toolExecution: 'auto' | 'sequential' | 'parallel';
  /** Treatment of the unstarted calls of a sequential batch when a steer arrives. */
  readonly steerTail: 'skip' | 'finish';
  /** Longest answer of one call, tokens. */
  readonly maxTokens: number;
  readonly reasoning: ReasoningLevel;
  /** Never throws: failures are events. */
  readonly stream: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;
  /** The transcript in the provider's shape. Pure. */
  readonly convertToLlm: (messages: readonly AgentMessage[]) => Promise<readonly LlmMessage[]>;
  /** The part of the transcript, of so many `tokens`, that this request shows; the transcript itself stays as it is. */
  readonly transformContext?: (
    messages: readonly AgentMessage[],
    tokens: number,
  ) => Promise<readonly AgentMessage[]>;
  /** Whether a person would see nothing of this answer, and was to see something: then it is asked for once more. */
  readonly isEmptyAnswer?: (text: string) => boolean;
  /** Whether a person may have seen a part of the answer that is being written. Absent: of every word. */
  readonly isShown?: () => boolean;
  /** Called when a model has said nothing for a minute. Never throws. */
  readonly onQuiet?: () => void;
  /** Records that a request was refused for these messages, before one without is made. Throwing ends the run. */
  readonly keepMarks?: (marks: readonly Mark[]) => Promise<void>;
  /** Messages that arrived for the active run; each is returned once. Throwing ends the run. */
  readonly getSteeringMessages: () => Promise<readonly AgentMessage[]>;
  /** Asked when the run would end; what it returns extends the run. */
  readonly getFollowUpMessages: () => Promise<readonly AgentMessage[]>;
  /** Asked around each turn, in this order. */
  readonly middleware?: readonly TurnMiddleware[];
  /** Tokens of the session's last call, its answer included; absent: the context's size is estimated. */
  readonly contextTokens?: number;
  /** Replaces the older part of the stored history by a summary. `failed`, and a throw: nothing has changed. */
  readonly compact?: (reason: CompactionReason, signal: AbortSignal) => Promise<'compacted' | 'failed'>;
  /** The stored context after a compaction. */
  readonly reloadMessages?: () => Promise<readonly AgentMessage[]>;
  /** May block a call with a reason the model reads. Throwing blocks it too (fails closed). */
  readonly beforeToolCall?: (call: ToolCallData, input: unknown) => Promise<ToolVerdict>;
  /** May rewrite a result. */
  readonly afterToolCall?: (call: ToolCallData, result: ToolResult) => Promise<ToolResult>;
  /** Whether this call may run; `denied` ends the batch (spec 5). */
  readonly permit?: (call: ToolCallData, tool: Tool) => Promise<'allowed' | 'denied'>;
};

/** Limits of one run; times in ms. */
export type LoopLimits = {
  readonly runTimeoutMs: number;
  /** Longest silence of a model stream. */
  readonly modelIdleMs: number;
  readonly turns: number;
  /** How often in a row one identical call may be made. */
  readonly repeatedCalls: number;
};

/** A turn as middleware sees it. */
export type TurnState = {
  readonly turn: number;
  readonly messages: readonly AgentMessage[];
  readonly stats: TurnStats;
};

export type TurnStats = {
  /** Tokens of the next request: the last call's own count, and an estimate of what is newer. */
  readonly contextTokens: number;
};

/** `compact` has the older part of the context summarised before the next model call; `stop` ends the run. */
export type TurnVerdict =
  | { readonly kind: 'continue' }
  | { readonly kind: 'compact'; readonly oldTokens: number; readonly threshold: number }
  | { readonly kind: 'stop'; readonly detail: string };

/** Checks around each turn. Throwing ends the run. */
export type TurnMiddleware = {
  beforeTurn?(turn: TurnState): Promise<TurnVerdict>;
  /** The turn's results are in its messages; the turn counts as over whatever is said. */
  afterTurn?(turn: TurnState): Promise<TurnVerdict>;
};

/** Why a context is compacted: it has grown past its threshold, or the provider refused it as too long. */
export type CompactionReason = 'threshold' | 'overflow';

export type ToolVerdict = { readonly kind: 'go' } | { readonly kind: 'block'; readonly reason: string };

export type ToolResult = { readonly output: ToolOutput; readonly isError: boolean };
