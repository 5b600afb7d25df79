import type { ModelPrices, Usage } from '#contracts/model.ts';
import { costOf, isPriced, isTokenCount } from '../prices.ts';

/** Token counts as servers send them; each may be absent or nonsense. */
export type WireUsage = {
  readonly prompt_tokens?: unknown;
  readonly completion_tokens?: unknown;
  /** The names of Anthropic's and OpenAI's other APIs, which some proxies keep. */
  readonly input_tokens?: unknown;
  readonly output_tokens?: unknown;
  readonly total_tokens?: unknown;
  readonly prompt_tokens_details?: {
    readonly cached_tokens?: unknown;
    readonly cache_write_tokens?: unknown;
    readonly cache_creation_tokens?: unknown;
    readonly audio_tokens?: unknown;
  } | null;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: unknown } | null;
  /** Names of the cached tokens: DeepSeek, Moonshot, LiteLLM. */
  readonly prompt_cache_hit_tokens?: unknown;
  readonly cached_tokens?: unknown;
  readonly cache_read_input_tokens?: unknown;
  readonly cache_creation_input_tokens?: unknown;
  /** OpenRouter's charge, dollars; Perplexity's in parts. */
  readonly cost?: unknown;
  readonly is_byok?: unknown;
  readonly cost_details?: { readonly upstream_inference_cost?: unknown } | null;
  /** DeepInfra's charge, dollars, and xAI's, 10^-10 dollars. */
  readonly estimated_cost?: unknown;
  readonly cost_in_usd_ticks?: unknown;
};

/** llama.cpp's own counts, which it sends even if usage isn't requested. */
export type WireTimings = {
  readonly prompt_n?: unknown;
  readonly cache_n?: unknown;
  readonly predicted_n?: unknown;
};

/**
 * Returns the tokens as the server counted them; undefined unless it counted both the prompt and the answer. No prompt
 * has no tokens, nor has an answer with text.
 */
export function countedUsage(
  usage: WireUsage | undefined,
  timings: WireTimings | undefined,
  hasText: boolean,
): Usage | undefined {
  const counted = usage && usageOf(usage);
  if (counted && isPlausible(counted, hasText)) return counted;
  const timed = timings && usageOfTimings(timings);
  return timed && isPlausible(timed, hasText) ? timed : undefined;
}

function isPlausible(usage: Usage, hasText: boolean): boolean {
  const prompt = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return prompt > 0 && (usage.outputTokens > 0 || !hasText);
}

/**
 * Converts the counts. The prompt's count includes tokens read from or written to the cache, unless there are more of
 * them than the prompt has (Azure's Grok), or the total says so. Only the total includes what Mistral counts beside the
 * prompt, sound, and what Gemini and xAI count beside the answer but charge as output, the reasoning.
 */
function usageOf(wire: WireUsage): Usage | undefined {
  const [promptCount, answerCount] = [
    wire.prompt_tokens ?? wire.input_tokens,
    wire.completion_tokens ?? wire.output_tokens,
  ];
  if (!isTokenCount(promptCount) || !isTokenCount(answerCount)) return undefined;
  const details = wire.prompt_tokens_details;
  const read =
    countIn(details?.cached_tokens) ||
    countIn(wire.prompt_cache_hit_tokens) ||
    countIn(wire.cached_tokens) ||
    countIn(wire.cache_read_input_tokens);
  const write =
    countIn(details?.cache_write_tokens) ||
    countIn(details?.cache_creation_tokens) ||
    countIn(wire.cache_creation_input_tokens);
  const total = countIn(wire.total_tokens);
  const isBeside = read > promptCount || (read > 0 && total === promptCount + answerCount + read + write);
  const cacheReadTokens = isBeside ? read : Math.min(promptCount, read);
  const cacheWriteTokens = isBeside ? write : Math.min(promptCount - cacheReadTokens, write);
  const sound = countIn(details?.audio_tokens);
  const soundBeside = total === promptCount + answerCount + sound ? sound : 0;
  const prompt = promptCount + soundBeside + (isBeside ? read + write : 0);
  return {
    inputTokens: prompt - cacheReadTokens - cacheWriteTokens,
    outputTokens: answerTokens(
      answerCount,
      total - prompt,
      countIn(wire.completion_tokens_details?.reasoning_tokens),
    ),
    cacheReadTokens,
    cacheWriteTokens,
  };
}

/** More reasoning than the answer has tokens was counted beside it. */
function answerTokens(counted: number, byTotal: number, reasoning: number): number {
  const whole = Math.max(counted, byTotal);
  return reasoning > whole ? counted + reasoning : whole;
}

function usageOfTimings({ prompt_n, cache_n, predicted_n }: WireTimings): Usage | undefined {
  if (!isTokenCount(prompt_n) || !isTokenCount(predicted_n)) return undefined;
  return {
    inputTokens: countIn(prompt_n),
    outputTokens: countIn(predicted_n),
    cacheReadTokens: countIn(cache_n),
    cacheWriteTokens: 0,
  };
}

/** Prices of the model that an answer names, and of the requested one. */
export type AnswerPrices = { readonly answered: ModelPrices; readonly asked: ModelPrices };

/**
 * Returns the charge in micro-dollars: as the server charged, which includes searches and other extras; or else by the
 * prices of the model that answered; or else by those of the requested model, since a proxy may name its models as it
 * likes.
 */
export function chargeOf(
  usage: Usage,
  wire: WireUsage | undefined,
  { answered, asked }: AnswerPrices,
): number {
  const charged = chargeIn(wire);
  if (charged !== undefined) return charged;
  return costOf(usage, isPriced(answered) ? answered : asked);
}

/** Dearer calls don't exist; a server that charges more has miscounted. */
const maxDollars = 10_000;

function chargeIn(wire: WireUsage | undefined): number | undefined {
  if (typeof wire !== 'object' || wire === null) return undefined;
  const { cost, cost_details: details, is_byok: isOwnKey } = wire;
  const total =
    typeof cost === 'object' && cost !== null ? (cost as { total_cost?: unknown }).total_cost : cost;
  const ticks = dollarsIn(wire.cost_in_usd_ticks, Number.MAX_SAFE_INTEGER);
  // With one's own key the vendor charges for the tokens, and OpenRouter only its fee.
  const upstream = dollarsIn(details?.upstream_inference_cost);
  const charge = dollarsIn(total);
  const isUpstreamBeside = isOwnKey === true || charge === undefined;
  const dollars =
    charge === undefined && upstream === undefined
      ? (dollarsIn(wire.estimated_cost) ?? (ticks && dollarsIn(ticks / 1e10)))
      : (charge ?? 0) + (isUpstreamBeside ? (upstream ?? 0) : 0);
  return dollars === undefined ? undefined : Math.ceil(dollars * 1_000_000);
}

/** A charge of nothing is a field that nobody filled in. */
function dollarsIn(value: unknown, most = maxDollars): number | undefined {
  return typeof value === 'number' && value > 0 && value <= most ? value : undefined;
}

function countIn(value: unknown): number {
  return isTokenCount(value) ? value : 0;
}
