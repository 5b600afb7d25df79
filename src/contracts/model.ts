import type { RetryAdvice } from './errors.ts';
import type { FinishReason } from './message.ts';

/** A family of models behind one API. A stream never throws: errors travel in it. */
export interface LlmProvider {
  readonly id: string;
  /**
   * Loads what a first call takes long to load; every call does so itself. After it a call leaves at once, so nobody
   * stops one that has been recorded and has not left. Rejects as the call would fail.
   */
  ready?(): Promise<void>;
  /** Streams one answer; exactly one `complete` or `error` event ends it. Abort ends it with `error` kind `aborted`. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /**
   * One answer without streaming, for summaries. Throws ParleyError with a `model_…` code, and what `onWait` rejects
   * with.
   */
  send(request: ModelRequest, signal: AbortSignal, onWait?: OnWait): Promise<ModelAnswer>;
  model(): ModelInfo;
}

/** Called before each wait for another try of a call, ms. */
export type OnWait = (waitMs: number) => Promise<void>;

/** Limits and abilities of a model; sizes in tokens. */
export type ModelInfo = {
  readonly id: string;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  /** Longest answer that a call asks for, unless it has a reason for less. */
  readonly answerTokens: number;
  readonly canThink: boolean;
  /** The settings say that it takes none. */
  readonly takesTools?: false;
  /** Micro-dollars per million tokens. */
  readonly prices: ModelPrices;
};

/** Prices of a model, micro-dollars per million tokens. */
export type ModelPrices = TokenPrices & {
  /** Some models price the whole call higher once its prompt (cache included) is longer than this. */
  readonly longPrompt?: { readonly aboveTokens: number; readonly prices: TokenPrices };
};

/** Micro-dollars per million tokens. */
export type TokenPrices = {
  readonly input: number;
  readonly output: number;
  readonly cacheWrite: number;
  readonly cacheRead: number;
};

/** One request to a model. */
export type ModelRequest = {
  /** Stable text first, so that the provider can cache it; volatile facts last. */
  readonly system: readonly SystemBlock[];
  readonly messages: readonly LlmMessage[];
  readonly tools: readonly ToolSpec[];
  /** Longest answer, its reasoning included, tokens. A provider may ask for less, never for more. */
  readonly maxTokens: number;
  readonly reasoning: ReasoningLevel;
};

/** How long a model thinks before it answers; a model that can't think ignores it. */
export type ReasoningLevel = 'off' | 'low' | 'medium' | 'high';

/** Every reasoning level, from none to the most. */
export const reasoningLevels = ['off', 'low', 'medium', 'high'] as const satisfies readonly ReasoningLevel[];

/** Purpose of a model call; each may have a model of its own. */
export type ModelPurpose = 'turn' | 'title' | 'summary';

/** A piece of the system prompt; stable pieces can be cached by the provider. */
export type SystemBlock = {
  readonly text: string;
  readonly isStable: boolean;
  /** Speaks of tools: left out for a model that takes none. */
  readonly isAboutTools?: true;
};

/** The provider's shape: roles alternate, every tool use is answered in the next user message. */
export type LlmMessage =
  | { readonly role: 'user'; readonly content: readonly UserBlock[] }
  | { readonly role: 'assistant'; readonly content: readonly AssistantBlock[] };

/** One block of a user message in a request. */
export type UserBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly mimeType: string; readonly base64: string }
  | {
      readonly type: 'tool_result';
      readonly toolCallId: string;
      readonly content: string;
      readonly isError: boolean;
    };

/** One block of an assistant message in a request. */
export type AssistantBlock =
  | { readonly type: 'text'; readonly text: string }
  /** `signature` begins with who wrote it, and `model` answered: only that provider's model takes it back. */
  | {
      readonly type: 'thinking';
      readonly thinking: string;
      readonly signature: string;
      readonly model: string;
    }
  | {
      readonly type: 'tool_use';
      readonly id: string;
      readonly name: string;
      readonly input: unknown;
      /** As the provider gave it with the call; others ignore it. */
      readonly signature?: string;
    };

/** A tool as a request describes it. */
export type ToolSpec = {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input object. */
  readonly inputSchema: Record<string, unknown>;
};

/** One event of a streamed answer. */
export type ModelEvent =
  | { readonly type: 'content_start' }
  | { readonly type: 'content_delta'; readonly text: string }
  | { readonly type: 'content_stop' }
  /** The delta with a `signature` ends its thinking block; a block may be a signature alone. */
  | { readonly type: 'thinking_delta'; readonly thinking: string; readonly signature?: string }
  | { readonly type: 'tool_use_start'; readonly id: string; readonly name: string }
  | { readonly type: 'tool_use_delta'; readonly id: string; readonly json: string }
  /** `signature`: what the provider wants back with the call, in its own words. */
  | { readonly type: 'tool_use_stop'; readonly id: string; readonly signature?: string }
  | {
      readonly type: 'complete';
      readonly finish: FinishReason;
      readonly usage: Usage;
      /** Micro-dollars, by the prices of the model that answered. */
      readonly cost: number;
      readonly model: string;
      /** The request offered tools, and the model was asked without them, since it takes none. */
      readonly withoutTools?: true;
      /** The answer is whole, but the provider didn't count all of its tokens: `usage` and `cost` are estimates. */
      readonly isUncounted?: true;
    }
  /**
   * Something worth telling, the stream goes on: a retry, a fallback model. `anew`: the answer so far counts
   * for nothing, and the model is asked once more.
   */
  | {
      readonly type: 'warning';
      readonly kind: 'retrying' | 'fallback' | 'anew';
      readonly detail: string;
      readonly waitMs: number;
    }
  | { readonly type: 'error'; readonly failure: ModelFailure };

/** Tokens that one call used, as the provider counted them. */
export type Usage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
};

/** Limits spending in all, or per day: of a `person` and of the whole `gateway`. */
export type BudgetScope = 'run' | 'session' | 'tree' | 'person' | 'gateway';

/** Why a model gave no answer. */
export type ModelFailure = {
  readonly kind:
    | 'aborted'
    | 'unauthorised'
    | 'overloaded'
    | 'overflow'
    | 'refused'
    /** The request could not be made, or was refused, because of its messages. */
    | 'unsendable'
    /** The answer is larger than any that is taken in. It may have been paid for: the same model isn't asked again. */
    | 'oversized'
    /** A budget has no room for it. */
    | 'budget'
    | 'failed';
  /** For the log and the owner; the person gets a fixed line. Holds no secret. */
  readonly detail: string;
  /** Whether the same request may succeed later. Absent: never. Only good before the first token. */
  readonly retry?: RetryAdvice;
  /** The wait is for a limit of this account's own: that other calls succeed says nothing about it. */
  readonly isOwnLimit?: boolean;
  /** For `unauthorised`: the key is taken, for other models than this one. */
  readonly isAboutModel?: boolean;
  /** For `budget`: the one that is spent. */
  readonly budget?: BudgetScope;
  /** For `unsendable`: the message at fault, if known. */
  readonly messageIndex?: number;
  /**
   * The provider counts nothing for it: it never got there, or was answered with an HTTP refusal. Absent when the
   * provider may have counted it: a connection that broke, an error inside the stream.
   */
  readonly isFree?: true;
  /** Its count, where the provider gave one with the failure: of an answer that was refused, say. */
  readonly counted?: Pick<ModelAnswer, 'usage' | 'cost' | 'model'>;
  /** For `unsendable`: the request never left this process. */
  readonly isLocal?: true;
};

/** A whole answer; `model` is the id of the model that gave it. */
export type ModelAnswer = {
  readonly text: string;
  readonly usage: Usage;
  /** Micro-dollars, by the prices of the model that answered. */
  readonly cost: number;
  readonly model: string;
  /** The provider didn't count the tokens: `usage` and `cost` are estimates. */
  readonly isUncounted?: true;
};

/** The names that a claim chooses from: what an agent's turns are answered by, unless its session says otherwise. */
export type TurnModels = {
  readonly byAgent: Readonly<Partial<Record<string, string>>>;
  readonly byDefault: string;
};
