import type { CallLedger } from '#contracts/call-ledger.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { LlmProvider, ModelPurpose, TurnModels } from '#contracts/model.ts';
import type { Config, ModelSettings, ProviderSettings } from '../config/config.ts';
import { findModel } from '../config/model-settings.ts';
import { revealAll } from '../config/secret.ts';
import { outboundFetch } from '../http/outbound-fetch.ts';
import { createAnthropicProvider } from './anthropic.ts';
import { withBoundedAnswers } from './bounded-answer.ts';
import { createDemoProvider } from './demo.ts';
import { metered } from './metering.ts';
import { type CallObserver, observed } from './observers/call-observer.ts';
import type { Tracer } from './observers/spans.ts';
import { createOpenAiProvider } from './openai/openai.ts';
import { createPluginProvider, type FindPluginProvider } from './plugin-provider.ts';
import type { KeyNote, ProviderOptions } from './provider-options.ts';
import { createProviderWaits, type ProviderWaits, type WaitingCalls } from './provider-waits.ts';
import { withRetry } from './retry.ts';
import { neverOfferingTools } from './unsupported.ts';

/** All configured models, by the names that people use: an alias, or `provider/id`. */
export interface Models {
  /**
   * Returns the provider of a named model, with its keys, retries and fallbacks. A name that is no longer configured
   * means the default model, with a single warning. `ledger`: records each attempt.
   */
  stackFor(name: string, ledger?: CallLedger): LlmProvider;
  /** Returns the model name that applies; `session`: set by `/model`, or for a sub-agent when it is spawned. */
  nameFor(agentId: string, purpose: ModelPurpose, session?: string): string;
  isKnown(name: string): boolean;
  names(): readonly string[];
}

export type ModelsDeps = {
  readonly clock: Clock;
  readonly log: Log;
  /** In [0, 1). Default: Math.random */
  readonly random?: () => number;
  /** Shared by all calls to a provider, by its name. */
  readonly waitsOf?: (provider: string) => ProviderWaits;
  /** Replaces the network. */
  readonly fetch?: typeof globalThis.fetch;
  readonly noteWindow?: ProviderDeps['noteWindow'];
  readonly noteKey?: ProviderDeps['noteKey'];
  readonly pluginProvider?: ProviderDeps['pluginProvider'];
  /** Notified of every attempt. */
  readonly observers?: readonly CallObserver[];
};

type ModelsConfig = Pick<Config, 'providers' | 'models' | 'model' | 'agents'>;

/** Creates the models of a valid configuration, in which every name refers to a model. */
export function createModels(config: ModelsConfig, deps: ModelsDeps): Models {
  const { clock, log, random = Math.random, waitsOf, observers = [] } = deps;
  /** One per model, however many names and stacks lead to it, so that its keys are tried once for all. */
  const providers = new Map<string, LlmProvider>();
  const stacks = new Map<string, LlmProvider>();
  const missed = new Set<string>();

  const isKnown = (name: string) => usableModel(name, config) !== undefined;
  const known = (name: string): string => {
    if (isKnown(name)) return name;
    if (!missed.has(name)) log.warn({ model: name, instead: config.model }, 'model.replaced');
    missed.add(name);
    return config.model;
  };
  const providerOf = (name: string): LlmProvider => {
    const found = providers.get(name);
    if (found) return found;
    const usable = usableModel(name, config);
    if (usable === undefined) throw new RangeError(`model ${name} is not configured`);
    const made = createProvider(usable.model, usable.provider, deps);
    providers.set(name, made);
    return made;
  };
  const stackOf = (name: string, ledger?: CallLedger): LlmProvider => {
    const names = [name, ...(usableModel(name, config)?.model.fallbacks ?? [])];
    const [first, ...fallbacks] = names.map((each) => {
      const provider = observed(providerOf(each), observers, ledger?.subject);
      return ledger ? metered(provider, ledger) : provider;
    });
    if (first === undefined || first.id === 'demo') return first ?? providerOf('demo');
    const waits = waitsOf && { waitsOf: (provider: LlmProvider) => waitsOf(provider.id) };
    return withRetry(first, { clock, random, fallbacks, ...waits });
  };
  return {
    stackFor: (given, ledger) => {
      const name = known(given);
      if (ledger) return stackOf(name, ledger);
      const stack = stacks.get(name) ?? stackOf(name);
      stacks.set(name, stack);
      return stack;
    },
    nameFor: (agentId, purpose, session) => {
      const agent = config.agents.find(({ id }) => id === agentId);
      const ofPurpose = { turn: undefined, title: agent?.titleModel, summary: agent?.summaryModel }[purpose];
      return ofPurpose ?? session ?? agent?.model ?? config.model;
    },
    isKnown,
    names: () => namesOf(config).filter(isKnown),
  };
}

/** Returns the names in the configuration, the default first. */
function namesOf({ model, models, agents }: ModelsConfig): readonly string[] {
  const ofAgents = agents.flatMap((agent) => agent.model ?? []);
  return [...new Set([model, ...Object.keys(models), ...ofAgents])];
}

function usableModel(name: string, config: ModelsConfig) {
  const model = findModel(name, config);
  const provider = model && config.providers[model.provider];
  return model && provider && provider.needs === undefined ? { model, provider } : undefined;
}

/** The models that a claim chooses from. */
export type ClaimModels = {
  /** Models of each agent's turns, unless a session has chosen a different one. */
  readonly turnModels: TurnModels;
  /** Models that name sessions; absent: sessions aren't named. */
  readonly titleModels?: TurnModels | undefined;
};

/** Returns the models that claims choose from. */
export function claimModels(
  models: Models,
  { agents, titles }: { readonly agents: readonly { readonly id: string }[]; readonly titles: boolean },
): ClaimModels {
  const namesFor = (purpose: ModelPurpose): TurnModels => ({
    byAgent: Object.fromEntries(agents.map(({ id }) => [id, models.nameFor(id, purpose)])),
    byDefault: models.nameFor('', purpose),
  });
  return { turnModels: namesFor('turn'), ...(titles && { titleModels: namesFor('title') }) };
}

type ProviderDeps = {
  readonly clock: Clock;
  readonly fetch?: typeof outboundFetch | undefined;
  /** Called when a refusal names a smaller window than is known. `model`: `provider/id`; `window` in tokens. */
  readonly noteWindow?: ((model: string, window: number) => void) | undefined;
  /** Called when one of a provider's keys is refused, and when one is first accepted. */
  readonly noteKey?: ((provider: string, note: KeyNote) => void) | undefined;
  /** Finds the models of plugins. */
  readonly pluginProvider?: FindPluginProvider | undefined;
};

/** Creates one model at its provider, with all of the provider's keys and without retries. */
export function createProvider(
  model: ModelSettings,
  { kind, apiKeys, baseUrl, headers }: ProviderSettings,
  { clock, fetch = outboundFetch, noteWindow, noteKey, pluginProvider }: ProviderDeps,
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
    ...(model.documents !== undefined && { takesDocuments: model.documents }),
  };
  const provider = createProviderOfKind(kind, { ...options, clock, pluginProvider });
  return model.tools === false ? neverOfferingTools(provider) : provider;
}

function createProviderOfKind(
  kind: ProviderSettings['kind'],
  options: ProviderOptions & Pick<ProviderDeps, 'clock' | 'pluginProvider'>,
): LlmProvider {
  switch (kind) {
    case 'plugin':
      return createPluginProvider(options.name ?? '', options.model, options.pluginProvider);
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

/** All configured models, with retries and their waiting calls. */
export type ConfiguredModel = {
  readonly models: Models;
  /** The default model's name, as shown to people. */
  readonly name: string;
  readonly isDemo: boolean;
  /** Records spans; absent unless tracing is on. */
  readonly tracer?: Tracer;
  /** Returns the calls that wait for a retry; absent if none ever does. */
  waiting?(): WaitingCalls;
};

/** Creates the configured models; without a key, the labeled demo model. */
export function configuredModel(
  config: Pick<Config, 'providers' | 'models' | 'model' | 'agents'>,
  deps: Pick<ModelsDeps, 'clock' | 'log' | 'observers' | 'noteWindow' | 'noteKey' | 'pluginProvider'>,
): ConfiguredModel {
  const { clock } = deps;
  const waits = new Map<string, ProviderWaits>();
  const waitsOf = (provider: string): ProviderWaits => {
    const known = waits.get(provider) ?? createProviderWaits({ clock, random: Math.random });
    waits.set(provider, known);
    return known;
  };
  const models = createModels(config, { ...deps, waitsOf });
  const isDemo = models.stackFor(config.model).id === 'demo';
  return {
    models,
    name: isDemo ? 'demo' : config.model,
    isDemo,
    waiting: () => sumOf([...waits.values()].map((each) => each.waiting())),
  };
}

function sumOf(all: readonly WaitingCalls[]): WaitingCalls {
  const since = all.flatMap((each) => (each.since === undefined ? [] : [each.since]));
  return {
    count: all.reduce((sum, { count }) => sum + count, 0),
    since: since.length > 0 ? Math.min(...since) : undefined,
  };
}
