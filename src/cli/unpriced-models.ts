import type { Config } from '../config/config.ts';
import { findModel } from '../config/model-settings.ts';
import { createBudgetRules } from '../models/budget-rules.ts';
import { openAiModel } from '../models/openai/openai-models.ts';
import { isPriced, lookUpPrices } from '../models/prices.ts';

type PricedConfig = Pick<
  Config,
  'providers' | 'models' | 'model' | 'agents' | 'budgets' | 'defaultAgent' | 'timeZone'
>;

/** Warns of models that may answer although their prices are unknown, so that no budget limits them. */
export function warnOfUnpriced(config: PricedConfig): { detail: string; fix: string } | undefined {
  const names = findUnpriced(config);
  if (names.length === 0) return undefined;
  return {
    detail: `budgets are set, but Parley knows no prices for ${names.join(', ')}, so calls to ${names.length === 1 ? 'it' : 'them'} aren't limited`,
    fix: 'set models.<alias>.prices and use the alias; for a free model, set the prices to 0',
  };
}

/** Returns nothing if there are no budgets. */
function findUnpriced(config: PricedConfig): readonly string[] {
  if (createBudgetRules(config).uncounted === 'all') return [];
  const named = [
    config.model,
    ...config.agents.flatMap(({ model, titleModel, summaryModel }) => [model, titleModel, summaryModel]),
    ...Object.keys(config.models),
  ].filter((name) => name !== undefined);
  const withFallbacks = named.flatMap((name) => [name, ...(findModel(name, config)?.fallbacks ?? [])]);
  return [...new Set(withFallbacks)].filter((name) => !hasPrices(name, config));
}

/** Says whether prices are known. The demo costs nothing; a free model of the operator's own has prices of 0. */
function hasPrices(name: string, config: PricedConfig): boolean {
  const model = findModel(name, config);
  const kind = model && config.providers[model.provider]?.kind;
  if (model === undefined || kind === undefined || kind === 'demo' || kind === 'plugin' || model.prices)
    return true;
  return isPriced(kind === 'anthropic' ? lookUpPrices(model.id) : openAiModel(model.id).prices);
}
