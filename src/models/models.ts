import type { CallLedger, LlmProvider, ModelPurpose } from '#contracts/model.ts';

/** Every model of the configuration, by the names people give them: an alias, or `provider/id`. */
export interface Models {
  /**
   * The provider of a named model, with its keys, retries and fallbacks. A name that the configuration no longer
   * has stands for the default, with a warning once. `ledger`: records each try.
   */
  stackFor(name: string, ledger?: CallLedger): LlmProvider;
  /** The name that applies; `session`: set by `/model`, or for a sub-agent at its spawn. */
  nameFor(agentId: string, purpose: ModelPurpose, session?: string): string;
  isKnown(name: string): boolean;
  names(): readonly string[];
}

/** One provider that answers under every name: for tests and measurements. */
export function onlyModel(provider: LlmProvider): Models {
  const { id } = provider.model();
  return {
    stackFor: () => provider,
    nameFor: () => id,
    isKnown: (name) => name === id,
    names: () => [id],
  };
}
