/**
 * Bounds what a call may cost before it leaves. A token is at least a byte, so the bytes of a prompt bound its
 * tokens; of a prompt that only goes on, the tokens of the last call and the bytes of what is new do so more closely.
 */
import { createHash } from 'node:crypto';
import type { CallRate } from '#contracts/call-ledger.ts';
import type { ModelInfo, ModelRequest, Usage, UserBlock } from '#contracts/model.ts';
import type { Models } from './models.ts';

/** Prices and sizes of a model at their dearest. */
export function rateOf(provider: string, model: ModelInfo): CallRate {
  const bands = [model.prices, ...(model.prices.longPrompt ? [model.prices.longPrompt.prices] : [])];
  return {
    provider,
    model: model.id,
    input: Math.max(...bands.flatMap(({ input, cacheWrite, cacheRead }) => [input, cacheWrite, cacheRead])),
    output: Math.max(...bands.map(({ output }) => output)),
    promptTokens: model.contextWindow,
    answerTokens: model.answerTokens,
  };
}

/** Rates of every model's first choice, by name. */
export function ratesOf(models: Models): Readonly<Record<string, CallRate>> {
  const rates = models.names().map((name) => {
    const provider = models.stackFor(name);
    return [name, rateOf(provider.id, provider.model())] as const;
  });
  return Object.fromEntries(rates);
}

/** The prompt of the last counted call, to bound the next one by. */
export type KnownPrompt = {
  readonly model: string;
  readonly length: number;
  readonly digest: string;
  readonly tokens: number;
};

/** A request in the words that count, without its images. */
export type PromptText = { readonly text: string; readonly images: number };

/** The most that any provider counts for one image, tokens. */
const imageTokens = 5_000;
/** Covers the words that providers add around prompt and tools, tokens. */
const overheadTokens = 2_000;

/** The words of a request; what only goes on has the same beginning. */
export function promptTextOf({ system, tools, messages }: ModelRequest): PromptText {
  let images = 0;
  const words = (block: UserBlock): UserBlock => {
    if (block.type !== 'image') return block;
    images += 1;
    return { ...block, base64: '' };
  };
  const said = messages.map((message) =>
    message.role === 'user' ? { ...message, content: message.content.map(words) } : message,
  );
  return { text: [system, tools, ...said].map((part) => JSON.stringify(part)).join('\n'), images };
}

/** Most tokens that the prompt may count for `model`. */
export function promptBound(
  { text, images }: PromptText,
  model: string,
  known: KnownPrompt | undefined,
): number {
  const rest = images * imageTokens + overheadTokens;
  if (known?.model !== model || known.digest !== digestOf(text.slice(0, known.length)))
    return Buffer.byteLength(text) + rest;
  return known.tokens + Buffer.byteLength(text.slice(known.length)) + rest;
}

/** Remembers a prompt with what the provider has counted for it and its answer. */
export function knownPrompt({ text }: PromptText, model: string, usage: Usage): KnownPrompt {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const tokens = inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
  return { model, length: text.length, digest: digestOf(text), tokens };
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
