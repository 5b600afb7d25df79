import type { Clock } from '#contracts/clock.ts';
import type { LlmProvider } from '#contracts/model.ts';
import type { ModelSettings, ProviderSettings } from '../config/config.ts';
import { revealAll } from '../config/secret.ts';
import { leanFetch } from '../http/lean-fetch.ts';
import { createAnthropicProvider } from './anthropic.ts';
import { withBoundedAnswers } from './bounded-answer.ts';
import { createDemoProvider } from './demo.ts';
import { createOpenAiProvider } from './openai/openai.ts';
import type { KeyNote, ProviderOptions } from './provider-options.ts';
import { neverOfferingTools } from './without-tools.ts';

export type ProviderDeps = {
  readonly clock: Clock;
  readonly fetch?: typeof leanFetch | undefined;
  /** Called when a refusal names a smaller window than is known. `model`: `provider/id`; `window` in tokens. */
  readonly noteWindow?: ((model: string, window: number) => void) | undefined;
  /** Called when one of a provider's keys is refused, and when one is first accepted. */
  readonly noteKey?: ((provider: string, note: KeyNote) => void) | undefined;
};

/** Creates one model at its provider, with all of the provider's keys and without retries. */
export function createProvider(
  model: ModelSettings,
  { kind, apiKeys, baseUrl, headers }: ProviderSettings,
  { clock, fetch = leanFetch, noteWindow, noteKey }: ProviderDeps,
): LlmProvider {
  const options: ProviderOptions = {
    name: model.provider,
    model: model.id,
    apiKeys: apiKeys.map((key) => key.reveal()),
    fetch: withBoundedAnswers(fetch),
    clock,
    ...(noteWindow && { noteWindow: (window) => noteWindow(`${model.provider}/${model.id}`, window) }),
    ...(noteKey && { noteKey: (note) => noteKey(model.provider, note) }),
    ...(baseUrl !== undefined && { baseUrl }),
    ...(headers && { headers: revealAll(headers) }),
    ...(model.prices && { prices: model.prices }),
    ...(model.window !== undefined && { contextWindow: model.window }),
    ...(model.maxTokens !== undefined && { answerTokens: model.maxTokens }),
  };
  const provider = createProviderOfKind(kind, { ...options, clock });
  return model.tools === false ? neverOfferingTools(provider) : provider;
}

function createProviderOfKind(
  kind: ProviderSettings['kind'],
  options: ProviderOptions & { readonly clock: Clock },
): LlmProvider {
  switch (kind) {
    case 'demo':
      return createDemoProvider(options);
    case 'anthropic':
      return createAnthropicProvider(options);
    case 'openai':
      return createOpenAiProvider(options);
    default:
      return kind satisfies never;
  }
}
