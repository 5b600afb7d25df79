/**
 * Bounds the cost of a call before it is sent. A token is at least a byte, so a prompt's bytes bound its tokens; for a
 * prompt that merely continues an earlier one, that call's tokens plus the new bytes give a tighter bound.
 */
import { createHash } from 'node:crypto';
import type { CallRate } from '#contracts/call-ledger.ts';
import type { ModelInfo, ModelRequest, Usage, UserBlock } from '#contracts/model.ts';
import type { Models } from './models.ts';

/** Returns a model's highest prices and its sizes. */
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

/** Returns the rates of every model's first choice, by name. */
export function ratesOf(models: Models): Readonly<Record<string, CallRate>> {
  const rates = models.names().map((name) => {
    const provider = models.stackFor(name);
    return [name, rateOf(provider.id, provider.model())] as const;
  });
  return Object.fromEntries(rates);
}

/** The prompt of the last counted call, used to bound the next one. */
export type KnownPrompt = {
  readonly model: string;
  readonly length: number;
  readonly digest: string;
  readonly tokens: number;
};

/** The text of a request that counts towards its tokens, without images; the page of a document is one. */
export type PromptText = { readonly text: string; readonly images: number };

/** The most that any provider counts for one image, tokens. */
const imageTokens = 5_000;
/** Covers the text that providers add around prompt and tools, tokens. */
const overheadTokens = 2_000;

/** Returns a request's text; a request that only continues another has the same beginning. */
export function promptTextOf({ system, tools, messages }: ModelRequest): PromptText {
  let images = 0;
  const words = (block: UserBlock): UserBlock => {
    if (block.type !== 'image' && block.type !== 'document') return block;
    images += block.type === 'document' ? block.pages : 1;
    return { ...block, base64: '' };
  };
  const said = messages.map((message) =>
    message.role === 'user' ? { ...message, content: message.content.map(words) } : message,
  );
  return { text: [system, tools, ...said].map((part) => JSON.stringify(part)).join('\n'), images };
}

/** Returns the most tokens that the prompt may count for `model`. */
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

/** UTF-8 bytes of a token, estimated: few enough for code and for Chinese, whose characters have three. */
const tokenBytes = 3;
/** Tokens of an image as large as providers take without shrinking it. */
const usualImageTokens = 1_600;

/** Estimates the tokens of a call that was stopped; those of its prompt only if nobody has counted them. */
export function estimateStopped(
  prompt: PromptText,
  { counted, writtenBytes }: { readonly counted: Usage | undefined; readonly writtenBytes: number },
): Usage {
  const outputTokens = Math.ceil(writtenBytes / tokenBytes);
  if (counted !== undefined) return { ...counted, outputTokens };
  const inputTokens =
    Math.ceil(Buffer.byteLength(prompt.text) / tokenBytes) + prompt.images * usualImageTokens;
  return { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
}

/** Says whether a count has more tokens than the call can have had; `answer`: the longest that was asked for. */
export function isMiscount(
  usage: Usage,
  most: { readonly prompt: number; readonly answer: number },
): boolean {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return inputTokens + cacheReadTokens + cacheWriteTokens > most.prompt || outputTokens > most.answer;
}

/** Records a prompt with the provider's token count for it and its answer. */
export function knownPrompt({ text }: PromptText, model: string, usage: Usage): KnownPrompt {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  const tokens = inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;
  return { model, length: text.length, digest: digestOf(text), tokens };
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
