import type { Clock } from '#contracts/clock.ts';
import type { ModelInfo, ModelPrices } from '#contracts/model.ts';

/** How a provider's server is reached. */
export type ApiAccess = {
  /** Tried in turn on 401, billing and quota errors; a server of one's own may need none. */
  readonly apiKeys: readonly string[];
  /** Default: the provider's own server. */
  readonly baseUrl?: string;
  /** Sent with every request, besides those of the API. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: typeof globalThis.fetch;
};

/** Everything secret in its requests, which an error may quote. */
export function secretsIn({ apiKeys, headers = {} }: ApiAccess): readonly string[] {
  return [...apiKeys, ...Object.values(headers)];
}

/** One model at its provider, as configured. */
export type ProviderOptions = ApiAccess & {
  readonly model: string;
  /** The provider's name in the configuration, for people and the ledger. */
  readonly name?: string;
  /** Instead of what is known of the model. */
  readonly prices?: ModelPrices;
  readonly contextWindow?: number;
  /** Longest answer that calls ask for, tokens. */
  readonly answerTokens?: number;
  /** Default: the system's. */
  readonly clock?: Pick<Clock, 'now'>;
};

/** Replaces what is known of a model by what is configured. Most of a small window is left to the prompt. */
export function configuredInfo<Known extends ModelInfo>(
  known: Known,
  { prices, contextWindow = known.contextWindow, answerTokens }: ProviderOptions,
): Known {
  return {
    ...known,
    ...(prices && { prices }),
    contextWindow,
    answerTokens: answerTokens ?? Math.min(known.answerTokens, Math.ceil(contextWindow / 4)),
  };
}
