/**
 * Anthropic's stream events as model events. Every event ends up in exactly one place; blocks of kinds
 * that Parley didn't ask for are ignored.
 */
import type {
  Message,
  MessageDeltaUsage,
  RawContentBlockDeltaEvent,
  RawContentBlockStartEvent,
  RawMessageDeltaEvent,
  RawMessageStreamEvent,
  StopReason,
  Usage as WireUsage,
} from '@anthropic-ai/sdk/resources/messages/messages';
import { jsonProblem, type ShapeLimits } from '#channel-kit/json-guard.ts';
import type { FinishReason } from '#contracts/message.ts';
import type { CacheMiss, ModelEvent, ModelPrices, Usage } from '#contracts/model.ts';
import { REDACTED } from './anthropic-request.ts';
import { cutOff } from './api-fault.ts';
import type { AnswerHead } from './cache-watch.ts';
import { signedBy } from './own-thinking.ts';
import { costOf, isTokenCount, noUsage } from './prices.ts';
import { SourceList } from './source-list.ts';

type OpenBlock =
  | { readonly kind: 'text' }
  | { readonly kind: 'thinking'; signature: string }
  /** `input`: arguments that came with the start of the call. */
  | { readonly kind: 'tool'; readonly id: string; readonly input: string; hasInput: boolean }
  | { readonly kind: 'other' };

/** Longer signatures aren't read to the end, UTF-16 units: an answer has no room for them and omits them. */
const longestSignature = 2_000_000;

type Stop = { readonly reason: StopReason | null; readonly category: string };

/** How an answer is attributed and priced. */
export type AnswerTerms = {
  /** Id of the requested model, for an answer that names none. */
  readonly model: string;
  /** Signs the reasoning, see `signedBy`. */
  readonly author: string;
  /** Returns an answer's prices from the model that it names. */
  readonly pricesOf: (model: string) => ModelPrices;
  /** Estimates the call's usage when the server doesn't report it. */
  readonly estimate: (answerLength: number) => Usage;
  /** Called with a complete answer; returns why its prompt wasn't read from the cache, if the server says so. */
  readonly missOf: (head: AnswerHead) => CacheMiss | undefined;
};

/** Reads one answer. */
export class EventReader {
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #terms: AnswerTerms;
  #usage = noUsage;
  #model: string;
  #id = '';
  #diagnostics: AnswerHead['diagnostics'];
  #stop: Stop | undefined;
  readonly #sources = new SourceList();
  /** Whether the server has counted the prompt, and the answer. */
  #counted = { prompt: false, answer: false };
  /** UTF-16 units of text, reasoning and arguments. */
  #length = 0;
  /** Complete text and tool blocks so far, and whether one of them is a call without arguments. */
  #saidBlocks = 0;
  #hasBareCall = false;

  constructor(terms: AnswerTerms) {
    this.#terms = terms;
    this.#model = terms.model;
  }

  #signed(signature: string): string {
    return signedBy(this.#terms.author, signature);
  }

  /** Returns the model events of one stream event. After `complete` or `error` the answer is over. */
  read(event: RawMessageStreamEvent | Message): readonly ModelEvent[] {
    const events = this.#read(event);
    for (const each of events) this.#length += lengthOf(each);
    return events;
  }

  #read(event: RawMessageStreamEvent | Message): readonly ModelEvent[] {
    switch (event?.type) {
      case 'message_start':
        if (this.#isOtherAnswer(textIn(event.message?.id))) return [{ type: 'error', failure: cutOff }];
        this.#readHead(event.message);
        this.#count(event.message?.usage);
        return this.#counted.prompt
          ? [{ type: 'progress', heldBytes: 0, prompt: { ...this.#usage, outputTokens: 0 } }]
          : [];
      case 'message':
        return this.#readWhole(event);
      case 'content_block_start':
        return this.#startBlock(event);
      case 'content_block_delta':
        return this.#readDelta(event);
      case 'content_block_stop':
        return this.#endBlock(event.index);
      case 'message_delta':
        this.#count(event.usage);
        // A second one without a reason repeats the counts.
        this.#stop = event.delta?.stop_reason || this.#stop === undefined ? stopOf(event.delta) : this.#stop;
        return [];
      case 'message_stop':
        return [this.#finish()];
      default:
        // The platform's versioning rules allow new events within a version.
        return [];
    }
  }

  #readHead(message: Message | undefined): void {
    this.#model = textIn(message?.model) || this.#model;
    this.#diagnostics = message?.diagnostics;
  }

  /** Says whether another answer begins here: a proxy has asked again, and the first answer will never be complete. */
  #isOtherAnswer(id: string): boolean {
    const isOther = this.#id !== '' && id !== '' && id !== this.#id;
    this.#id = id || this.#id;
    return isOther;
  }

  /** Reads a complete answer, as a server may send it to a streamed request. */
  #readWhole(message: Message): readonly ModelEvent[] {
    const blocks = Array.isArray(message.content) ? message.content : [];
    const events = blocks.flatMap((block, index) => [
      ...this.#startBlock({ type: 'content_block_start', index, content_block: block }),
      ...this.#endBlock(index),
    ]);
    this.#id = textIn(message.id);
    this.#readHead(message);
    this.#count(message.usage);
    this.#stop = stopOf(message);
    return [...events, this.#finish()];
  }

  #count(wire: WireUsage | MessageDeltaUsage | undefined): void {
    this.#usage = mergeUsage(this.#usage, wire);
    const { inputTokens, cacheReadTokens, cacheWriteTokens } = this.#usage;
    this.#counted.prompt = inputTokens + cacheReadTokens + cacheWriteTokens > 0;
    this.#counted.answer = this.#usage.outputTokens > 0;
  }

  /**
   * Returns the answer if its stream breaks off here. Between two blocks nothing that was begun is missing, only the
   * token count and the stop reason. Undefined when the answer is incomplete.
   */
  endHere(): ModelEvent | undefined {
    if (this.#stop !== undefined) return this.#finish();
    // Without a stop reason, a bare call is indistinguishable from one cut off before its arguments.
    const isWhole = this.#blocks.size === 0 && this.#saidBlocks > 0 && !this.#hasBareCall;
    if (!isWhole) return undefined;
    const end = this.#finish();
    return end.type === 'complete' ? { ...end, isUncounted: true } : end;
  }

  #startBlock({ index, content_block: block }: RawContentBlockStartEvent): readonly ModelEvent[] {
    switch (block?.type) {
      case 'text':
        this.#blocks.set(index, { kind: 'text' });
        return [{ type: 'content_start' }, ...said(textIn(block.text))];
      case 'tool_use':
        this.#blocks.set(index, {
          kind: 'tool',
          id: textIn(block.id),
          input: inputIn(block.input),
          hasInput: false,
        });
        return [{ type: 'tool_use_start', id: textIn(block.id), name: textIn(block.name) }];
      case 'thinking':
        this.#blocks.set(index, { kind: 'thinking', signature: textIn(block.signature) });
        return thought(textIn(block.thinking));
      case 'redacted_thinking':
        return [
          {
            type: 'thinking_delta',
            thinking: '',
            signature: this.#signed(`${REDACTED}${textIn(block.data)}`),
          },
        ];
      default:
        this.#blocks.set(index, { kind: 'other' });
        return [];
    }
  }

  #readDelta({ index, delta }: RawContentBlockDeltaEvent): readonly ModelEvent[] {
    const block = this.#blocks.get(index);
    switch (delta?.type) {
      case 'text_delta':
        return said(textIn(delta.text));
      case 'thinking_delta':
        return thought(textIn(delta.thinking));
      case 'signature_delta':
        if (block?.kind === 'thinking' && block.signature.length <= longestSignature)
          block.signature += textIn(delta.signature);
        return [];
      case 'citations_delta':
        this.#sources.add(delta.citation);
        return [];
      case 'input_json_delta':
        if (block?.kind !== 'tool' || textIn(delta.partial_json) === '') return [];
        block.hasInput = true;
        return [{ type: 'tool_use_delta', id: block.id, json: delta.partial_json }];
      default:
        return [];
    }
  }

  #endBlock(index: number): readonly ModelEvent[] {
    const block = this.#blocks.get(index);
    this.#blocks.delete(index);
    if (block?.kind === 'text' || block?.kind === 'tool') this.#saidBlocks += 1;
    if (block?.kind === 'tool' && !block.hasInput && block.input === '{}') this.#hasBareCall = true;
    switch (block?.kind) {
      case 'text':
        return [{ type: 'content_stop' }];
      case 'thinking':
        return [{ type: 'thinking_delta', thinking: '', signature: this.#signed(block.signature) }];
      case 'tool':
        return [
          ...(block.hasInput ? [] : [{ type: 'tool_use_delta', id: block.id, json: block.input } as const]),
          { type: 'tool_use_stop', id: block.id },
        ];
      default:
        return [];
    }
  }

  #finish(): ModelEvent {
    const isCounted = this.#counted.prompt && (this.#counted.answer || this.#length === 0);
    const [usage, model] = [isCounted ? this.#usage : this.#terms.estimate(this.#length), this.#model];
    const counted = { usage, cost: costOf(usage, this.#terms.pricesOf(model)), model };
    if (this.#stop?.reason === 'refusal') {
      const detail = `refused: ${this.#stop.category}`;
      return { type: 'error', failure: { kind: 'refused', detail, ...(isCounted && { counted }) } };
    }
    const sources = this.#sources.list();
    const cacheMiss = this.#terms.missOf({ id: this.#id, model, diagnostics: this.#diagnostics });
    return {
      ...{ type: 'complete', finish: finishOf(this.#stop?.reason ?? null), ...counted },
      ...(!isCounted && { isUncounted: true }),
      ...(sources.length > 0 && { sources }),
      ...(cacheMiss && { cacheMiss }),
    };
  }
}

function lengthOf(event: ModelEvent): number {
  if (event.type === 'content_delta') return event.text.length;
  if (event.type === 'thinking_delta') return event.thinking.length;
  return event.type === 'tool_use_delta' ? event.json.length : 0;
}

/** Returns the arguments that come with a call's start: usually none, but some proxies send them all there. */
function inputIn(input: unknown): string {
  if (typeof input === 'string') return input.trim() === '' ? '{}' : input;
  return jsonProblem(input, inputShape) === undefined ? JSON.stringify(input ?? {}) : '{}';
}

const inputShape: ShapeLimits = { depth: 64, values: 20_000 };

/** Returns no event for an empty piece, which isn't a token: an answer that breaks off after one is retried. */
function said(text: string): readonly ModelEvent[] {
  return text === '' ? [] : [{ type: 'content_delta', text }];
}

function thought(thinking: string): readonly ModelEvent[] {
  return thinking === '' ? [] : [{ type: 'thinking_delta', thinking }];
}

/** Reads a stop. `delta` has the type that the platform documents; a compatible server may omit anything. */
function stopOf(delta: Partial<RawMessageDeltaEvent['delta']> | undefined): Stop {
  return { reason: delta?.stop_reason ?? null, category: delta?.stop_details?.category ?? 'unnamed' };
}

/** Reads a field that should be text. */
function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Reads a field that should be a token count. */
function countIn(value: unknown, known: number): number {
  return isTokenCount(value) ? value : known;
}

function finishOf(reason: StopReason | null): FinishReason {
  switch (reason) {
    case 'tool_use':
      return 'tool_use';
    // The answer reached the end of the context window, so it is cut off like one that reached its own limit.
    case 'model_context_window_exceeded':
    case 'max_tokens':
      return 'max_tokens';
    default:
      return 'end_turn';
  }
}

/** Merges token counts: later ones are cumulative, absent ones keep the known value. */
export function mergeUsage(known: Usage, wire: WireUsage | MessageDeltaUsage | undefined): Usage {
  return {
    inputTokens: countIn(wire?.input_tokens, known.inputTokens),
    outputTokens: countIn(wire?.output_tokens, known.outputTokens),
    cacheReadTokens: countIn(wire?.cache_read_input_tokens, known.cacheReadTokens),
    cacheWriteTokens: countIn(wire?.cache_creation_input_tokens, known.cacheWriteTokens),
  };
}
