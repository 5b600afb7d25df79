import type { RetryAdvice } from './errors.ts';
import type { FinishReason, Source } from './message.ts';

/** A family of models behind one API. A stream never throws: errors are events in it. */
export interface LlmProvider {
  readonly id: string;
  /**
   * Loads what makes a first call slow; every call also does so itself. Afterwards a call is sent immediately, so none
   * can be stopped between being recorded and being sent. Rejects as the call would fail.
   */
  ready?(): Promise<void>;
  /** Streams one answer; exactly one `complete` or `error` event ends it. Abort ends it with `error` kind `aborted`. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /**
   * Returns one answer without streaming, for summaries. Throws ParleyError with a `model_…` code, or whatever
   * `onWait` rejects with.
   */
  send(request: ModelRequest, signal: AbortSignal, onWait?: OnWait): Promise<ModelAnswer>;
  model(): ModelInfo;
}

/** Called before each wait for another attempt at a call, ms. */
export type OnWait = (waitMs: number) => Promise<void>;

/** Limits and abilities of a model; sizes in tokens. */
export type ModelInfo = {
  readonly id: string;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  /** Longest answer that a call asks for, unless it has a reason for less. */
  readonly answerTokens: number;
  readonly canThink: boolean;
  /** The settings say that it supports no tools. */
  readonly takesTools?: false;
  /** It reads PDFs; others are given their text. */
  readonly takesDocuments?: boolean;
  /** Micro-dollars per million tokens. */
  readonly prices: ModelPrices;
};

/** Prices of a model, micro-dollars per million tokens. */
export type ModelPrices = TokenPrices & {
  /** Some models price the entire call higher once its prompt (cache included) is longer than this. */
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
  /** Longest answer including its reasoning, tokens. A provider may ask for less, never for more. */
  readonly maxTokens: number;
  readonly reasoning: ReasoningLevel;
  /** Id of the session whose previous request this one continues; absent: it continues none. */
  readonly conversation?: string;
};

/** How long a model thinks before it answers; a model that can't think ignores it. */
export type ReasoningLevel = 'off' | 'low' | 'medium' | 'high';

/** Every reasoning level, from none to highest. */
export const reasoningLevels = ['off', 'low', 'medium', 'high'] as const satisfies readonly ReasoningLevel[];

/** Purpose of a model call; each may have its own model. */
export type ModelPurpose = 'turn' | 'title' | 'summary';

/** A piece of the system prompt; stable pieces can be cached by the provider. */
export type SystemBlock = {
  readonly text: string;
  readonly isStable: boolean;
  /** Mentions tools: left out for a model that supports none. */
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
  /** A PDF. `text`: for models that take no documents. */
  | {
      readonly type: 'document';
      readonly name: string;
      readonly base64: string;
      readonly pages: number;
      readonly text: string;
    }
  | {
      readonly type: 'tool_result';
      readonly toolCallId: string;
      readonly content: string;
      readonly isError: boolean;
    };

/** One block of an assistant message in a request. */
export type AssistantBlock =
  | { readonly type: 'text'; readonly text: string }
  /** `signature` begins with its author, and `model` wrote the answer: only that provider's model accepts it back. */
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
      /** As the provider sent it with the call; others ignore it. */
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
  /** All text of the answer so far was reasoning, so a viewer takes it back. */
  | { readonly type: 'content_recall' }
  /**
   * The model writes, but there is nothing to pass on yet. It isn't a token: a call that fails after it may be repeated.
   * `heldBytes`: how much of what it has written so far isn't passed on. `prompt`: the tokens of the prompt, as soon as
   * the provider counts them.
   */
  | { readonly type: 'progress'; readonly heldBytes: number; readonly prompt?: Usage }
  /** The delta with a `signature` ends its thinking block; a block may consist of only a signature. */
  | { readonly type: 'thinking_delta'; readonly thinking: string; readonly signature?: string }
  | { readonly type: 'tool_use_start'; readonly id: string; readonly name: string }
  | { readonly type: 'tool_use_delta'; readonly id: string; readonly json: string }
  /** `signature`: the provider's own value that it requires back with the call. */
  | { readonly type: 'tool_use_stop'; readonly id: string; readonly signature?: string }
  | {
      readonly type: 'complete';
      readonly finish: FinishReason;
      readonly usage: Usage;
      /** Micro-dollars, by the prices of the model that answered. */
      readonly cost: number;
      readonly model: string;
      /** The request offered tools, but the model was called without them, since it supports none. */
      readonly withoutTools?: true;
      /** The answer is complete, but the provider didn't count all of its tokens: `usage` and `cost` are estimates. */
      readonly isUncounted?: true;
      /** Named by a search model beside its answer. */
      readonly sources?: readonly Source[];
      readonly cacheMiss?: CacheMiss;
    }
  /**
   * Worth reporting, but the stream continues: a retry, a fallback model. `anew`: the answer so far is void,
   * and the model is called once more.
   */
  | {
      readonly type: 'warning';
      readonly kind: 'retrying' | 'fallback' | 'anew';
      readonly detail: string;
      readonly waitMs: number;
    }
  | { readonly type: 'error'; readonly failure: ModelFailure };

/** Why a request couldn't be read from the provider's cache. */
export type CacheMiss = {
  /** As the provider names it. */
  readonly reason: string;
  /** Parts that differ from those of the conversation's previous request, as they were sent. */
  readonly changed: readonly PromptPart[];
  /** Hash of the parts as they were sent. */
  readonly prefix: string;
  /** The reason names a part that was sent unchanged. */
  readonly isUnexplained?: true;
};

/** A part of a request that its provider caches; `messages`: those of the previous request. */
export type PromptPart = 'model' | 'system' | 'tools' | 'messages';

/** Tokens used by one call, as counted by the provider. */
export type Usage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
};

/** The scope of a budget; `person` and `gateway` (everybody) are limited per day, the others in total. */
export type BudgetScope = 'run' | 'session' | 'tree' | 'person' | 'gateway';

/** The meaning of a server's refusal. */
export type RefusalClass =
  /** The prompt doesn't fit: summarize and ask again. */
  | 'overflow'
  /** The longest answer that was asked for is too long for the model: ask for less. */
  | 'answer-limit'
  /** A message can't be sent: it is left out from now on. */
  | 'content'
  /** The provider's rules forbid it: said to the person, never sent to another model. */
  | 'policy'
  /** The key is refused: try the next one. */
  | 'key'
  /** The account has no credit or is closed: try the next key. */
  | 'credit'
  /** The account has used up what it may for a day, a week or a month: try the next key. */
  | 'allowance'
  | 'rate'
  /** A fault of the server that passes. */
  | 'passing'
  /** The model wrote a call that its server couldn't read: let it write again. */
  | 'slip'
  /** The model isn't known here. */
  | 'no-model'
  /** The account may not use the model. */
  | 'forbidden'
  /** The address belongs to something else. */
  | 'address'
  | 'unknown';

/** Why a model gave no answer. */
export type ModelFailure = {
  readonly kind:
    | 'aborted'
    | 'unauthorised'
    | 'overloaded'
    | 'overflow'
    | 'refused'
    /** The request couldn't be built, or was refused, because of its messages. */
    | 'unsendable'
    /** The answer is larger than the limit. It may have been paid for, so the same model isn't called again. */
    | 'oversized'
    /** A budget has no room for it. */
    | 'budget'
    | 'failed';
  /** For the log and the owner; the person gets a fixed line. Contains no secret. */
  readonly detail: string;
  /** Whether the same request may succeed later. Absent: never. Only valid before the first token. */
  readonly retry?: RetryAdvice;
  /** The wait is for this account's own limit, so the success of other calls says nothing about it. */
  readonly isOwnLimit?: boolean;
  /** For `unauthorised`: the key is accepted, but not for this model. */
  readonly isAboutModel?: boolean;
  /** The meaning of the server's refusal, if it refused the request. */
  readonly refusal?: RefusalClass;
  /** For `overflow`: the model's window as its server names it, tokens. */
  readonly window?: number;
  /** For `overflow`: the tokens of instructions and tools that alone don't fit, so no shorter conversation would. */
  readonly fixedTokens?: number;
  /** The wait that the server asks for is longer than a call can wait: other models are asked at once. */
  readonly isLongWait?: true;
  /** For `budget`: the one that is spent. */
  readonly budget?: BudgetScope;
  /** For `unsendable`: the message at fault, if known. */
  readonly messageIndex?: number;
  /**
   * The provider counts nothing for it: the request never arrived, or was answered with an HTTP refusal. Absent when
   * the provider may have counted it: a broken connection, an error inside the stream.
   */
  readonly isFree?: true;
  /** Its count, if the provider gave one with the failure, for example for a refused answer. */
  readonly counted?: Pick<ModelAnswer, 'usage' | 'cost' | 'model'>;
  /** For `unsendable`: the request never left this process. */
  readonly isLocal?: true;
};

/** A complete answer; `model` is the id of the model that gave it. */
export type ModelAnswer = {
  readonly text: string;
  readonly usage: Usage;
  /** Micro-dollars, by the prices of the model that answered. */
  readonly cost: number;
  readonly model: string;
  /** The provider didn't count the tokens: `usage` and `cost` are estimates. */
  readonly isUncounted?: true;
};

/** The model names that a claim chooses from: they answer an agent's turns unless its session says otherwise. */
export type TurnModels = {
  readonly byAgent: Readonly<Partial<Record<string, string>>>;
  readonly byDefault: string;
};
