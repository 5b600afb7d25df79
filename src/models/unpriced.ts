import type { Config } from '../config/config.ts';
import { findModel } from '../config/model-settings.ts';
import { createBudgetRules } from './budget-rules.ts';
import { openAiModel } from './openai/openai-models.ts';
import { lookUpPrices, noPrices } from './prices.ts';

type PricedConfig = Pick<
  Config,
  'providers' | 'models' | 'model' | 'agents' | 'budgets' | 'defaultAgent' | 'timeZone'
>;

/** Names models that may answer although nobody knows their prices, so that no budget can hold them; none without budgets. */
export function findUnpriced(config: PricedConfig): readonly string[] {
  if (createBudgetRules(config).uncounted === 'all') return [];
  const named = [
    config.model,
    ...config.agents.flatMap(({ model, titleModel, summaryModel }) => [model, titleModel, summaryModel]),
    ...Object.keys(config.models),
  ].filter((name) => name !== undefined);
  const withFallbacks = named.flatMap((name) => [name, ...(findModel(name, config)?.fallbacks ?? [])]);
  return [...new Set(withFallbacks)].filter((name) => !isPriced(name, config));
}

/** The demo costs nothing; a model of one's own that does says so by prices of 0. */
function isPriced(name: string, config: PricedConfig): boolean {
  const model = findModel(name, config);
  const kind = model && config.providers[model.provider]?.kind;
  if (model === undefined || kind === undefined || kind === 'demo' || model.prices) return true;
  const { input, output } = kind === 'anthropic' ? lookUpPrices(model.id) : openAiModel(model.id).prices;
  return input !== noPrices.input || output !== noPrices.output;
}
