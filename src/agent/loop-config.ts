import type { Clock } from '#contracts/clock.ts';
import type { TranscriptId } from '#contracts/ids.ts';
import type { AgentMessage, ToolCallData } from '#contracts/message.ts';
import type { LlmMessage, ModelEvent, ModelRequest, SystemBlock, ToolSpec } from '#contracts/model.ts';
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
  readonly thinkingTokens?: number;
  /** Never throws: failures are events. */
  readonly stream: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelEvent>;
  /** The transcript in the provider's shape. Pure. */
  readonly convertToLlm: (messages: readonly AgentMessage[]) => Promise<readonly LlmMessage[]>;
  /** The part of the transcript that this request shows; the transcript itself stays as it is. */
  readonly transformContext?: (messages: readonly AgentMessage[]) => Promise<readonly AgentMessage[]>;
  /** Whether a person would see nothing of this answer, and was to see something: then it is asked for once more. */
  readonly isEmptyAnswer?: (text: string) => boolean;
  /** Records that a request was refused for these messages, before one without is made. Throwing ends the run. */
  readonly keepMarks?: (marks: readonly Mark[]) => Promise<void>;
  /** Messages that arrived for the active run; each is returned once. Throwing ends the run. */
  readonly getSteeringMessages: () => Promise<readonly AgentMessage[]>;
  /** Asked when the run would end; what it returns extends the run. */
  readonly getFollowUpMessages: () => Promise<readonly AgentMessage[]>;
  readonly beforeTurn?: readonly BeforeTurn[];
  readonly afterTurn?: readonly ((turn: TurnState) => Promise<void>)[];
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

export type TurnState = { readonly turn: number; readonly messages: readonly AgentMessage[] };

/** Middleware at the start of a turn. `compact` replaces the context; `stop` ends the run. */
export type BeforeTurn = (turn: TurnState) => Promise<
  | { readonly kind: 'continue' }
  | {
      readonly kind: 'compact';
      readonly oldTokens: number;
      readonly threshold: number;
      compact(): Promise<readonly AgentMessage[]>;
    }
  | { readonly kind: 'stop'; readonly detail: string }
>;

export type ToolVerdict = { readonly kind: 'go' } | { readonly kind: 'block'; readonly reason: string };

export type ToolResult = { readonly output: ToolOutput; readonly isError: boolean };

export type { ToolSpec };
