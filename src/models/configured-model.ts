import type { Clock } from '#contracts/clock.ts';
import type { LlmProvider } from '#contracts/model.ts';
import type { ModelSettings } from '../config/config.ts';
import { createProviderWaits, type WaitingCalls } from './provider-waits.ts';
import { createModel } from './registry.ts';

/** The model that answers, with retries and its waiting calls. */
export type ConfiguredModel = {
  readonly provider: LlmProvider;
  /** As people should see it. */
  readonly name: string;
  readonly isDemo: boolean;
  /** The calls that wait to be tried again; absent where none ever does. */
  waiting?(): WaitingCalls;
};

/** The model of the configuration; without a key the labelled demo. */
export function configuredModel(settings: ModelSettings, clock: Clock): ConfiguredModel {
  const { provider, id, apiKeys, baseUrl, fallbacks, prices, maxTokens } = settings;
  if (provider === 'demo')
    return { provider: createModel({ provider }, { clock }), name: 'demo', isDemo: true };
  const keys = apiKeys.map((key) => key.reveal());
  const options = {
    provider,
    model: id,
    apiKeys: keys,
    fallbacks,
    answerTokens: maxTokens,
    ...(baseUrl !== undefined && { baseUrl }),
    ...(prices && { prices }),
  };
  const waits = createProviderWaits({ clock, random: Math.random });
  return {
    provider: createModel(options, { clock, waits }),
    name: id,
    isDemo: false,
    waiting: waits.waiting,
  };
}
