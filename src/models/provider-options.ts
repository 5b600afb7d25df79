import type { Clock } from '#contracts/clock.ts';
import type { ModelInfo, ModelPrices } from '#contracts/model.ts';

/** How to reach a provider's server. */
export type ApiAccess = {
  /** Tried in turn on 401, billing and quota errors; the operator's own server may need none. */
  readonly apiKeys: readonly string[];
  /** Default: the provider's own server. */
  readonly baseUrl?: string;
  /** Sent with every request in addition to the API's own. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: typeof globalThis.fetch;
  /** Called when a key is refused, and when one is first accepted. */
  readonly noteKey?: (note: KeyNote) => void;
  /** Called when a refusal names a smaller window than is known, tokens. */
  readonly noteWindow?: (window: number) => void;
};

/** A server's judgement of one of the keys. */
export type KeyNote = KeyLabel &
  (
    | { readonly isRefused: false }
    /** `isCredit`: the key is valid, but its account can't pay. */
    | { readonly isRefused: true; readonly isCredit: boolean; readonly detail: string }
  );

/** Tells people a key from its provider’s others. */
export type KeyLabel = {
  /** Position in its variable, from 1. */
  readonly key: number;
  readonly keys: number;
  /** The last characters; absent if they would be a large part of the key. */
  readonly tail?: string;
};

const tailLength = 4;
const shortestWithTail = 20;

/** Returns the label of one of a provider's keys, which contains at most a small part of the key. */
export function labelKey(keys: readonly string[], index: number): KeyLabel {
  const key = keys[index] ?? '';
  return {
    ...{ key: index + 1, keys: keys.length },
    ...(key.length >= shortestWithTail && { tail: key.slice(-tailLength) }),
  };
}

/** Returns all secrets in the provider's requests, which an error may quote. */
export function secretsIn({ apiKeys, headers = {} }: ApiAccess): readonly string[] {
  return [...apiKeys, ...Object.values(headers)];
}

/** One model at its provider, as configured. */
export type ProviderOptions = ApiAccess & {
  readonly model: string;
  /** The provider's name in the configuration, for people and the ledger. */
  readonly name?: string;
  /** Overrides the model's known prices. */
  readonly prices?: ModelPrices;
  readonly contextWindow?: number;
  /** Longest answer that calls request, tokens. */
  readonly answerTokens?: number;
  readonly takesDocuments?: boolean;
  /** Default: the system's. */
  readonly clock?: Pick<Clock, 'now'>;
};

/** Replaces a model's known facts by the configured ones. Most of a small window is left for the prompt. */
export function configuredInfo<Known extends ModelInfo>(
  known: Known,
  { prices, contextWindow = known.contextWindow, answerTokens, takesDocuments }: ProviderOptions,
): Known {
  return {
    ...known,
    ...(prices && { prices }),
    ...(takesDocuments !== undefined && { takesDocuments }),
    contextWindow,
    answerTokens: answerTokens ?? Math.min(known.answerTokens, Math.ceil(contextWindow / 4)),
  };
}
