/** Models for programs that run the loop themselves: one model at one provider, with retries. */
import { systemClock } from '#channel-kit/system-clock.ts';
import type { LlmProvider, ModelPrices } from '#contracts/model.ts';
import type { AgentLoopConfig } from '../agent/loop-config.ts';
import { createAnthropicProvider } from '../models/anthropic.ts';
import { createDemoProvider } from '../models/demo.ts';
import { createOpenAiProvider } from '../models/openai/openai.ts';
import type { ProviderOptions } from '../models/provider-options.ts';
import { withRetry } from '../models/retry.ts';

/** A model as the loop needs it. The stream never throws: failures are events. */
export type Model = Pick<LlmProvider, 'model'> & Pick<AgentLoopConfig, 'stream'>;

export type ModelOptions = {
  /** Used unless the loop has a key from `getApiKey`; a server of your own may need none. */
  readonly apiKey?: string;
  /** Default: the provider's own server. */
  readonly baseUrl?: string;
  /** Sent with every request in addition to the API's own. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the model's known prices. */
  readonly prices?: ModelPrices;
  /** Default: the model's known window, tokens. */
  readonly contextWindow?: number;
  /** Longest answer, tokens. */
  readonly answerTokens?: number;
};

/** Returns a model of Anthropic's API. */
export function anthropic(model: string, options: ModelOptions = {}): Model {
  return keyed(createAnthropicProvider, model, options);
}

/** Returns a model of OpenAI's Chat Completions API, which many servers speak. */
export function openai(model: string, options: ModelOptions = {}): Model {
  return keyed(createOpenAiProvider, model, options);
}

/** Returns the labeled demo model, which needs no key and no network. */
export function demoModel(): Model {
  return createDemoProvider({ clock: systemClock, chunkMs: 0 });
}

/** A provider is made for one key, so a new key makes a new one. */
function keyed(
  create: (options: ProviderOptions) => LlmProvider,
  model: string,
  { apiKey: ownKey, ...options }: ModelOptions,
): Model {
  const make = (apiKey: string | undefined) =>
    withRetry(create({ ...options, model, apiKeys: apiKey === undefined ? [] : [apiKey] }), {
      clock: systemClock,
      random: Math.random,
    });
  let current = { apiKey: ownKey, provider: make(ownKey) };
  return {
    stream: (request, signal, apiKey = ownKey) => {
      if (apiKey !== current.apiKey) current = { apiKey, provider: make(apiKey) };
      return current.provider.stream(request, signal);
    },
    model: () => current.provider.model(),
  };
}
