import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { LlmProvider, ModelPrices } from '#contracts/model.ts';
import { leanFetch } from '../http/lean-fetch.ts';
import { createAnthropicProvider } from './anthropic.ts';
import { createDemoProvider } from './demo.ts';
import type { ProviderWaits } from './provider-waits.ts';
import { withRetry } from './retry.ts';

export type ModelOptions =
  | { readonly provider: 'demo' }
  | {
      readonly provider: 'anthropic';
      readonly model: string;
      readonly apiKeys: readonly string[];
      readonly baseUrl?: string;
      /** Models of the same provider, asked in this order when the first one fails. */
      readonly fallbacks?: readonly string[];
      /** Prices of `model` that replace its list prices. */
      readonly prices?: ModelPrices;
      /** Longest answer that calls ask for, tokens. */
      readonly answerTokens?: number;
    };

export type ModelDeps = {
  readonly clock: Clock;
  /** In [0, 1). Default: Math.random */
  readonly random?: () => number;
  /** Shared by all models of the provider. */
  readonly waits?: ProviderWaits;
};

/** The model a setting names, with retries and fallbacks. Throws ParleyError `config_invalid` without a key. */
export function createModel(options: ModelOptions, deps: ModelDeps): LlmProvider {
  switch (options.provider) {
    case 'demo':
      return createDemoProvider({ clock: deps.clock });
    case 'anthropic':
      return createClaude(options, deps);
    default:
      return options satisfies never;
  }
}

function createClaude(
  options: Extract<ModelOptions, { provider: 'anthropic' }>,
  deps: ModelDeps,
): LlmProvider {
  const apiKeys = options.apiKeys.filter((key) => key.trim() !== '');
  if (apiKeys.length === 0) {
    throw new ParleyError('config_invalid', `model ${options.model}: no Anthropic API key is set`);
  }
  const shared = {
    apiKeys,
    fetch: leanFetch,
    ...(options.baseUrl === undefined ? {} : { baseUrl: options.baseUrl }),
  };
  const { model, prices, answerTokens } = options;
  const limit = { ...(answerTokens !== undefined && { answerTokens }) };
  const provider = createAnthropicProvider({ ...shared, ...limit, model, ...(prices && { prices }) });
  const fallbacks = (options.fallbacks ?? []).map((id) =>
    createAnthropicProvider({ ...shared, ...limit, model: id }),
  );
  return withRetry(provider, { random: Math.random, ...deps, fallbacks });
}
