import type { ModelInfo, ModelPrices } from '#contracts/model.ts';
import { dollars, noPrices } from '../prices.ts';

/** A model's facts that the request builder needs in addition to the public ones. */
export type OpenAiModel = ModelInfo & {
  /** Effort requested for reasoning level `off`; absent: none is sent. */
  readonly effortWhenOff?: 'none' | 'minimal' | 'low';
  /** Reasoning models refuse the older name of the limit. */
  readonly limitField: 'max_tokens' | 'max_completion_tokens';
  /** Chat Completions accepts tools for these models only while they don't reason. */
  readonly reasonsWithoutTools?: true;
};

type Traits = Omit<OpenAiModel, keyof ModelInfo> & {
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  readonly canThink: boolean;
  readonly prices: ModelPrices;
};

const reasoning = { canThink: true, limitField: 'max_completion_tokens' } as const;
const plain = { canThink: false, limitField: 'max_tokens' } as const;
const gpt5 = { ...reasoning, contextWindow: 400_000, maxOutputTokens: 128_000 } as const;
const gpt6 = {
  ...reasoning,
  contextWindow: 1_050_000,
  maxOutputTokens: 128_000,
  effortWhenOff: 'none',
  reasonsWithoutTools: true,
} as const;
const gpt41 = { ...plain, contextWindow: 1_047_576, maxOutputTokens: 32_768 } as const;
const gpt4o = { ...plain, contextWindow: 128_000, maxOutputTokens: 16_384 } as const;

/** Cache writes aren't billed separately for these. */
const priced = (input: number, cacheRead: number, output: number) => dollars(input, output, input, cacheRead);

/** Prompts longer than 272,000 tokens cost twice as much, and their answers half as much again. */
const priced6 = (input: number, output: number): ModelPrices => ({
  ...dollars(input, output, input * 1.25, input * 0.1),
  longPrompt: { aboveTokens: 272_000, prices: dollars(input * 2, output * 1.5, input * 2.5, input * 0.2) },
});

/** Source: developers.openai.com/api/docs/models, read 2026-11. */
const traits: readonly (readonly [RegExp, Traits])[] = [
  [/^gpt-6-luna$/, { ...gpt6, prices: priced6(0.1, 0.5) }],
  [/^gpt-6-sol$/, { ...gpt6, prices: priced6(2, 10) }],
  [/^gpt-6/, { ...gpt6, prices: noPrices }],
  [/^gpt-5\.4-nano$/, { ...gpt5, effortWhenOff: 'none', prices: priced(0.2, 0.02, 1.25) }],
  [/^gpt-5\.4-mini$/, { ...gpt5, effortWhenOff: 'none', prices: priced(0.75, 0.075, 4.5) }],
  [/^gpt-5\.4$/, { ...gpt5, effortWhenOff: 'none', prices: priced(2.5, 0.25, 15) }],
  [/^gpt-5-nano$/, { ...gpt5, effortWhenOff: 'minimal', prices: priced(0.05, 0.005, 0.4) }],
  [/^gpt-5-mini$/, { ...gpt5, effortWhenOff: 'minimal', prices: priced(0.25, 0.025, 2) }],
  [/^gpt-5$/, { ...gpt5, effortWhenOff: 'minimal', prices: priced(1.25, 0.125, 10) }],
  [/^gpt-4\.1-nano$/, { ...gpt41, prices: priced(0.1, 0.025, 0.4) }],
  [/^gpt-4\.1-mini$/, { ...gpt41, prices: priced(0.4, 0.1, 1.6) }],
  [/^gpt-4\.1$/, { ...gpt41, prices: priced(2, 0.5, 8) }],
  [/^gpt-4o-mini$/, { ...gpt4o, prices: priced(0.15, 0.075, 0.6) }],
  [/^gpt-4o$/, { ...gpt4o, prices: priced(2.5, 1.25, 10) }],
  [/^(gpt-[5-9]|o\d)/, { ...gpt5, prices: noPrices }],
];

/** Cautious assumptions about a model of another server, or one that isn't in the table. */
const unknown: Traits = {
  ...plain,
  contextWindow: 128_000,
  maxOutputTokens: 32_000,
  canThink: true,
  prices: noPrices,
};

/** Returns a model's facts by its id, which may include its vendor (`openai/gpt-5`) and date. */
export function openAiModel(id: string): OpenAiModel {
  const found = traits.find(([pattern]) => pattern.test(baseName(id)))?.[1] ?? unknown;
  return { answerTokens: 16_000, takesDocuments: found !== unknown, ...found, id };
}

/** Says whether an answer's model is the requested one: answers may add a date. */
export function isSameModel(one: string, other: string): boolean {
  return one === other || undated(one) === undated(other);
}

function baseName(id: string): string {
  return undated(id.replace(/^openai\//, ''));
}

function undated(id: string): string {
  return id.replace(/-\d{4}-\d{2}-\d{2}$/, '');
}
