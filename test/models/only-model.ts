import type { LlmProvider } from '#contracts/model.ts';
import { metered } from '../../src/models/metering.ts';
import type { Models } from '../../src/models/models.ts';

/** Returns models with one provider under every name, for tests and measurements. */
export function onlyModel(provider: LlmProvider): Models {
  const { id } = provider.model();
  return {
    stackFor: (_name, ledger) => (ledger ? metered(provider, ledger) : provider),
    nameFor: () => id,
    isKnown: (name) => name === id,
    names: () => [id],
  };
}
