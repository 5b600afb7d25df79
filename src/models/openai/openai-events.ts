/**
 * Chunks of Chat Completions, as sent by OpenAI, Ollama, llama.cpp and OpenRouter, as model events. The answer is
 * complete once a chunk contains a stop reason; its usage may come with that chunk, in a separate one, or never.
 */
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { jsonProblem, type ShapeLimits } from '#channel-kit/json-guard.ts';
import type { FinishReason } from '#contracts/message.ts';
import type { ModelEvent, Usage } from '#contracts/model.ts';
import { signedBy } from '../own-thinking.ts';
import { SourceList } from '../source-list.ts';
import { REASONING_CONTENT, REASONING_DETAILS } from './openai-request.ts';
import { ToolCallReader, type ToolDelta } from './openai-tool-calls.ts';
import {
  type AnswerPrices,
  chargeOf,
  countedUsage,
  type WireTimings,
  type WireUsage,
} from './openai-usage.ts';

/** A chunk, including what other servers add to it. Any field may be missing. */
type Chunk = Partial<Omit<ChatCompletionChunk, 'usage' | 'choices'>> & {
  readonly choices?: readonly (Choice | null)[] | null;
  readonly usage?: WireUsage | null;
  readonly timings?: WireTimings;
  /** Groq's place for the usage. */
  readonly x_groq?: { readonly usage?: WireUsage | null } | null;
  /** Set by tidy-stream.ts where the server wrote `[DONE]`. */
  readonly isDone?: true;
};

/** `message`: a complete answer to a streamed request, or Perplexity's answer so far, beside its delta. */
type Choice = {
  readonly index?: unknown;
  readonly delta?: Delta | null;
  readonly message?: Delta | null;
  readonly finish_reason?: unknown;
  /** Moonshot's place for the usage. */
  readonly usage?: WireUsage | null;
};

export type Delta = {
  readonly content?: unknown;
  readonly refusal?: unknown;
  readonly tool_calls?: unknown;
  /** Predecessor of `tool_calls`. */
  readonly function_call?: unknown;
  readonly reasoning?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning_details?: unknown;
  /** Groq's name for what the content is. */
  readonly channel?: unknown;
  readonly annotations?: unknown;
};

/**
 * Matches stop reasons of servers that gave up in the middle of an answer: OpenRouter, DeepSeek, Z.ai, vLLM; or that
 * couldn't read the model's call: Gemini.
 */
export const brokenOff =
  /^(?:error|insufficient_system_resource|network_error|abort)$|malformed_|unexpected_tool_call/i;
/** Matches stop reasons of filtered answers. Routers pass on Gemini's and Z.ai's own. */
export const refused =
  /content_?filter|sensitive|safety|prohibited|blocklist|spii|recitation|moderation|guardrail|policy|refus/i;

/** Many times more than servers send; the length in UTF-16 units. */
const longestDetails = 1_000_000;
const detailsShape: ShapeLimits = { depth: 16, values: 20_000 };

export type ReaderTerms = {
  readonly model: string;
  /** Signs the reasoning, see `signedBy`. */
  readonly author: string;
  readonly pricesOf: (model: string) => AnswerPrices;
  /** The request offered tools but was sent without them. */
  readonly leftOutTools?: boolean;
  /** Estimates the call's usage when the server doesn't report it. */
  readonly estimate: (answerLength: number) => Usage;
};

/** Reads one answer. */
export class ChunkReader {
  readonly #terms: ReaderTerms;
  readonly #calls: ToolCallReader;
  #model = '';
  #open: 'text' | 'reasoning' | undefined;
  /** Signature of the open reasoning, as JSON. */
  #details: string[] = [];
  #detailsLength = 0;
  #isGivenBack = false;
  #refusal = '';
  #finish: string | undefined;
  /** The server has said that the answer is complete, without a reason. */
  #isDone = false;
  #usage: WireUsage | undefined;
  #isUsageFinal = false;
  #countsAlong = false;
  readonly #sources = new SourceList();
  #timings: WireTimings | undefined;
  #length = 0;

  constructor(terms: ReaderTerms) {
    this.#terms = terms;
    this.#calls = new ToolCallReader(terms.model);
  }

  /** True once everything that a server sends has arrived, so there is nothing left to wait for. */
  get isWhole(): boolean {
    return this.#isDone || (this.#finish !== undefined && this.#isUsageFinal);
  }

  /** True once the answer is complete, although its usage may still follow. */
  get hasEnded(): boolean {
    return this.#finish !== undefined;
  }

  read(raw: ChatCompletionChunk): readonly ModelEvent[] {
    // Has the type that OpenAI documents; compatible servers omit and add fields freely.
    const chunk = raw as unknown as Chunk;
    if (typeof chunk !== 'object' || chunk === null) return [];
    if (typeof chunk.model === 'string' && chunk.model !== '') this.#model = chunk.model;
    const choice = firstChoice(chunk.choices);
    const usage = chunk.usage || chunk.x_groq?.usage || choice?.usage;
    if (usage && typeof usage === 'object') this.#usage = usage;
    if (chunk.timings) this.#timings = chunk.timings;
    this.#sources.read(chunk as Readonly<Record<string, unknown>>);
    const events = this.#readChoice(choice);
    if (chunk.isDone === true && (this.#length > 0 || this.#calls.count > 0 || this.#finish !== undefined))
      this.#isDone = true;
    const isCounted = usage !== null && typeof usage === 'object';
    // A server that counts in every chunk sends its last count after the answer.
    if (isCounted && this.#finish === undefined) this.#countsAlong = true;
    this.#isUsageFinal =
      isCounted && this.#finish !== undefined && (!this.#countsAlong || choice === undefined);
    return events;
  }

  #readChoice(choice: Choice | undefined): readonly ModelEvent[] {
    if (choice === undefined) return [];
    if (this.#finish !== undefined) return [];
    this.#sources.readAnnotations(choice.delta?.annotations ?? choice.message?.annotations);
    const said = choice.delta ? this.#readDelta(choice.delta) : [];
    // Complete answers repeat what the deltas said, unless these are empty.
    const isRepeated = this.#length > 0 || this.#calls.count > 0;
    const events = choice.message && !isRepeated ? [...said, ...this.#readDelta(choice.message)] : said;
    if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '')
      this.#finish = choice.finish_reason;
    return events;
  }

  /** Returns the answer's last events when its stream ends; undefined if it isn't known to be complete. */
  end(): readonly ModelEvent[] | undefined {
    const finish = this.#finish ?? (this.#isDone ? 'stop' : undefined);
    if (finish === undefined || brokenOff.test(finish)) return undefined;
    const closing = [...this.#close(), ...this.#calls.end()];
    const counted = countedUsage(this.#usage, this.#timings, this.#length > 0);
    const usage = counted ?? this.#terms.estimate(this.#length);
    const model = this.#model || this.#terms.model;
    const spent = { usage, cost: chargeOf(usage, this.#usage, this.#terms.pricesOf(model)), model };
    if (refused.test(finish) || (this.#refusal !== '' && this.#length === 0)) {
      const failure = {
        kind: 'refused',
        detail: `refused: ${finish}`,
        ...(counted && { counted: spent }),
      } as const;
      return [...closing, { type: 'error', failure }];
    }
    const toldOf = this.#terms.leftOutTools === true && ({ withoutTools: true } as const);
    const sources = this.#sources.list();
    const complete = {
      ...{ type: 'complete' as const, finish: this.#finishOf(finish), ...spent, ...toldOf },
      ...(sources.length > 0 && { sources }),
    } as const;
    return [...closing, counted === undefined ? { ...complete, isUncounted: true } : complete];
  }

  #readDelta(delta: Delta): readonly ModelEvent[] {
    this.#refusal += textIn(delta.refusal);
    const said = textIn(delta.content);
    return [
      ...this.#readReasoning(delta, delta.channel === 'analysis' ? said : thinkingIn(delta.content)),
      ...this.#say(delta.channel === 'analysis' ? '' : said),
      ...callsIn(delta).flatMap((call) => {
        const events = this.#calls.read(call);
        return events.length === 0 ? [] : [...this.#close(), ...events];
      }),
    ];
  }

  #readReasoning(delta: Delta, inContent: string): readonly ModelEvent[] {
    const details = Array.isArray(delta.reasoning_details) ? delta.reasoning_details : [];
    const given = textIn(delta.reasoning_content);
    const thinking = given || textIn(delta.reasoning) || inContent || textInDetails(details);
    if (details.length === 0 && thinking === '') return [];
    const events = this.#think(thinking);
    this.#keepDetails(details);
    if (given !== '') this.#isGivenBack = true;
    return events;
  }

  #think(thinking: string): readonly ModelEvent[] {
    const closing = this.#open === 'text' ? this.#close() : [];
    this.#open = 'reasoning';
    this.#length += thinking.length;
    return thinking === '' ? closing : [...closing, { type: 'thinking_delta', thinking }];
  }

  /** Keeps the details for the signature; past a limit there is none, since servers want all details back or none. */
  #keepDetails(details: readonly unknown[]): void {
    if (details.length === 0 || this.#detailsLength > longestDetails) return;
    if (jsonProblem(details, detailsShape) !== undefined) {
      this.#detailsLength = Number.POSITIVE_INFINITY;
      return;
    }
    const json = JSON.stringify(details).slice(1, -1);
    this.#detailsLength += json.length;
    this.#details.push(json);
  }

  #say(text: string): readonly ModelEvent[] {
    if (text === '') return [];
    this.#length += text.length;
    const delta = { type: 'content_delta', text } as const;
    if (this.#open === 'text') return [delta];
    const closing = this.#close();
    this.#open = 'text';
    return [...closing, { type: 'content_start' }, delta];
  }

  #close(): readonly ModelEvent[] {
    const open = this.#open;
    this.#open = undefined;
    if (open === 'text') return [{ type: 'content_stop' }];
    if (open !== 'reasoning') return [];
    const details = this.#details.splice(0).join(',');
    const signature =
      details !== '' && this.#detailsLength <= longestDetails
        ? `${REASONING_DETAILS}[${details}]`
        : this.#isGivenBack
          ? REASONING_CONTENT
          : undefined;
    this.#isGivenBack = false;
    this.#detailsLength = 0;
    return signature === undefined
      ? []
      : [{ type: 'thinking_delta', thinking: '', signature: signedBy(this.#terms.author, signature) }];
  }

  /** Maps a stop reason; some servers say `stop` along with calls, or `tool_calls` without any. */
  #finishOf(finish: string): FinishReason {
    if (cutOffs.has(finish.toLowerCase())) return 'max_tokens';
    return this.#calls.count > 0 ? 'tool_use' : 'end_turn';
  }
}

const cutOffs: ReadonlySet<string> = new Set([
  'length',
  'max_tokens',
  'model_context_window_exceeded',
  'model_length',
]);

function firstChoice(choices: Chunk['choices']): Choice | undefined {
  if (!Array.isArray(choices)) return undefined;
  const all = choices as readonly (Choice | null)[];
  return (
    all.find(
      (choice) =>
        choice && (choice.index === undefined || choice.index === null || Number(choice.index) === 0),
    ) ?? undefined
  );
}

function callsIn({ tool_calls: given, function_call: old }: Delta): readonly ToolDelta[] {
  const calls: readonly unknown[] = Array.isArray(given)
    ? given
    : given
      ? [given]
      : old
        ? [{ function: old }]
        : [];
  return calls.filter((call): call is ToolDelta => typeof call === 'object' && call !== null);
}

/** Returns the text of a field. Mistral's reasoning models send a list of parts. */
export function textIn(value: unknown): string {
  if (Array.isArray(value))
    return value.map((part) => (/^(?:output_)?text$/.test(part?.type) ? textIn(part.text) : '')).join('');
  return typeof value === 'string' ? value : '';
}

/** Returns the reasoning among a content's parts. */
function thinkingIn(content: unknown): string {
  if (!Array.isArray(content)) return '';
  return content
    .map((part) =>
      /^(?:thinking|reasoning)$/.test(part?.type)
        ? partText(part.thinking ?? part.reasoning ?? part.text)
        : '',
    )
    .join('');
}

function partText(value: unknown): string {
  return Array.isArray(value) ? value.map((part) => textIn(part?.text)).join('') : textIn(value);
}

/** Returns OpenRouter's reasoning where only its details were sent. */
function textInDetails(details: readonly unknown[]): string {
  return (details as readonly { readonly text?: unknown; readonly summary?: unknown }[])
    .map((detail) => textIn(detail?.text) || textIn(detail?.summary))
    .join('');
}
