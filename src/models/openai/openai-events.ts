/**
 * Chunks of Chat Completions, as sent by OpenAI, Ollama, llama.cpp and OpenRouter, as model events. The answer is
 * complete once a chunk contains a stop reason; its usage may come with that chunk, in a separate one, or never.
 */
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { jsonProblem, type ShapeLimits } from '#channel-kit/json-guard.ts';
import type { FinishReason } from '#contracts/message.ts';
import type { ModelEvent, Usage } from '#contracts/model.ts';
import { signedBy } from '../own-thinking.ts';
import { type SplitText, ThinkingSplitter } from './inline-thinking.ts';
import { REASONING_CONTENT, REASONING_DETAILS } from './openai-request.ts';
import { ToolCallReader } from './openai-tool-calls.ts';
import {
  type AnswerPrices,
  chargeOf,
  countedUsage,
  type WireTimings,
  type WireUsage,
} from './openai-usage.ts';

/** A chunk, including what other servers add to it. Any field may be missing. */
type Chunk = Partial<Omit<ChatCompletionChunk, 'usage' | 'choices'>> & {
  readonly choices?: readonly { readonly delta?: Delta | null; readonly finish_reason?: string | null }[];
  readonly usage?: WireUsage | null;
  readonly timings?: WireTimings;
};

type Delta = Partial<ChatCompletionChunk.Choice.Delta> & {
  readonly reasoning?: string | null;
  readonly reasoning_content?: string | null;
  readonly reasoning_details?: readonly unknown[] | null;
};

/** Stop reasons of servers that gave up in the middle of an answer: OpenRouter, DeepSeek, Z.ai, vLLM. */
export const brokenOff: ReadonlySet<string> = new Set([
  'error',
  'insufficient_system_resource',
  'network_error',
  'abort',
]);
/** Z.ai has its own word for filtered answers. */
export const refused: ReadonlySet<string> = new Set(['content_filter', 'sensitive']);

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
  readonly #splitter = new ThinkingSplitter();
  #model = '';
  #open: 'text' | 'reasoning' | undefined;
  /** Signature of the open reasoning, as JSON. */
  #details: string[] = [];
  #detailsLength = 0;
  #isGivenBack = false;
  #refusal = '';
  #finish: string | undefined;
  #usage: WireUsage | undefined;
  #timings: WireTimings | undefined;
  #length = 0;

  constructor(terms: ReaderTerms) {
    this.#terms = terms;
    this.#calls = new ToolCallReader(terms.model);
  }

  /** True once everything that a server sends has arrived, so there is nothing left to wait for. */
  get isWhole(): boolean {
    return this.#finish !== undefined && this.#usage !== undefined;
  }

  read(raw: ChatCompletionChunk): readonly ModelEvent[] {
    // Has the type that OpenAI documents; compatible servers omit and add fields freely.
    const chunk = raw as unknown as Chunk;
    if (typeof chunk.model === 'string' && chunk.model !== '') this.#model = chunk.model;
    if (chunk.usage) this.#usage = chunk.usage;
    if (chunk.timings) this.#timings = chunk.timings;
    const choice = chunk.choices?.[0];
    const events = choice?.delta ? this.#readDelta(choice.delta) : [];
    if (choice?.finish_reason) this.#finish = choice.finish_reason;
    return events;
  }

  /** Returns the answer's last events when its stream ends; undefined if there was no stop reason. */
  end(): readonly ModelEvent[] | undefined {
    const finish = this.#finish;
    if (finish === undefined || brokenOff.has(finish)) return undefined;
    const closing = [...this.#endText(), ...this.#calls.end()];
    const counted = countedUsage(this.#usage, this.#timings);
    const usage = counted ?? this.#terms.estimate(this.#length);
    const model = this.#model || this.#terms.model;
    const spent = { usage, cost: chargeOf(usage, this.#usage, this.#terms.pricesOf(model)), model };
    if (refused.has(finish) || (this.#refusal !== '' && this.#length === 0)) {
      const failure = {
        kind: 'refused',
        detail: `refused: ${finish}`,
        ...(counted && { counted: spent }),
      } as const;
      return [...closing, { type: 'error', failure }];
    }
    const toldOf = this.#terms.leftOutTools === true && ({ withoutTools: true } as const);
    const complete = { type: 'complete', finish: this.#finishOf(finish), ...spent, ...toldOf } as const;
    return [...closing, counted === undefined ? { ...complete, isUncounted: true } : complete];
  }

  #readDelta(delta: Delta): readonly ModelEvent[] {
    this.#refusal += textIn(delta.refusal);
    return [
      ...this.#readReasoning(delta),
      ...this.#readText(textIn(delta.content)),
      ...(Array.isArray(delta.tool_calls) ? delta.tool_calls : []).flatMap((call) => [
        ...this.#endText(),
        ...this.#calls.read(call ?? {}),
      ]),
    ];
  }

  #readReasoning(delta: Delta): readonly ModelEvent[] {
    const details = Array.isArray(delta.reasoning_details) ? delta.reasoning_details : [];
    const given = textIn(delta.reasoning_content);
    const thinking = given || textIn(delta.reasoning);
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

  #readText(piece: string): readonly ModelEvent[] {
    return piece === '' ? [] : this.#report(this.#splitter.take(piece));
  }

  /** Ends the text, because something else follows or the answer is over. */
  #endText(): readonly ModelEvent[] {
    return [...this.#report(this.#splitter.rest()), ...this.#close()];
  }

  #report({ thinking, text }: SplitText): readonly ModelEvent[] {
    return [...(thinking === '' ? [] : this.#think(thinking)), ...this.#say(text)];
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

  /** Maps a stop reason; some servers say `stop` along with calls. */
  #finishOf(finish: string): FinishReason {
    if (finish === 'length' || finish === 'model_context_window_exceeded') return 'max_tokens';
    return this.#calls.count > 0 ? 'tool_use' : 'end_turn';
  }
}

/** Returns the text of a field. Mistral's reasoning models send a list of parts. */
export function textIn(value: unknown): string {
  if (Array.isArray(value))
    return value.map((part) => (part?.type === 'text' ? textIn(part.text) : '')).join('');
  return typeof value === 'string' ? value : '';
}
