// Providers with their keys, and the model that a name refers to: an alias, `provider/id`, or the bare id
// of a well-known family.
import type { Config, ModelSettings, ProviderSettings } from './config.ts';
import { decode } from './decode.ts';
import { type Environment, variableNamed } from './environment.ts';
import type { Problem } from './problem.ts';
import type { FileSettings } from './schema.ts';
import { findSecretProblem, Secret } from './secret.ts';
import { suggestName } from './suggestion.ts';
import { microDollars } from './units.ts';

type ProviderPreset = Pick<ProviderSettings, 'kind' | 'baseUrl'> & { readonly needsKey: boolean };

const presets: Readonly<Record<string, ProviderPreset>> = {
  anthropic: { kind: 'anthropic', needsKey: true },
  openai: { kind: 'openai', needsKey: true },
  openrouter: { kind: 'openai', baseUrl: 'https://openrouter.ai/api/v1', needsKey: true },
  ollama: { kind: 'openai', baseUrl: 'http://127.0.0.1:11434/v1', needsKey: false },
  demo: { kind: 'demo', needsKey: false },
};

/** Each vendor's default model. */
export const vendorModels = {
  anthropic: 'anthropic/claude-sonnet-5-5',
  openai: 'openai/gpt-6-luna',
} as const;

export type ModelConfig = Pick<Config, 'providers' | 'models' | 'model'>;

/** Reads the keys of every provider and determines the default model. */
export function readModelSettings(
  settings: FileSettings,
  environment: Environment,
): ModelConfig & Pick<Config, 'tracing'> & { readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const names = new Set([...Object.keys(presets), ...Object.keys(settings.providers)]);
  const providers: Record<string, ProviderSettings> = {};
  for (const name of names) {
    const variable = settings.providers[name]?.keysEnv ?? keyVariable(name);
    const apiKeys = keysIn(variable, environment).map((key) => new Secret(key));
    // The known providers' variables are checked with the other secrets.
    if (!(variable in environment.values)) {
      const isOwnServer = presets[name] === undefined || settings.providers[name]?.baseUrl !== undefined;
      problems.push(...findKeyProblems(variable, environment, isOwnServer ? 'server-key' : 'api-key'));
    }
    const headersEnv = settings.providers[name]?.headersEnv;
    const headers = headersEnv === undefined ? undefined : headersIn(headersEnv, environment);
    providers[name] = {
      ...providerOf(name, settings.providers[name], { apiKeys, variable }),
      ...(headers && { headers }),
    };
  }
  const models = Object.fromEntries(
    Object.entries(settings.models).map(([alias, { prices, ...model }]) => [
      alias,
      { ...model, ...(prices && { prices: inMicroDollars(prices) }) },
    ]),
  );
  const model = settings.model ?? defaultModel(providers);
  const config = { providers, models, model };
  problems.push(...findNameProblems(settings, config));
  return { ...config, tracing: tracingOf(settings, environment), problems };
}

function tracingOf({ tracing }: FileSettings, environment: Environment): Config['tracing'] {
  const { endpoint, headersEnv } = tracing;
  return { ...(endpoint !== undefined && { endpoint }), headers: headersIn(headersEnv, environment) };
}

/** Parses a variable's headers in the format of OpenTelemetry exporters; values may be percent-encoded. */
function headersIn(variable: string, environment: Environment): Readonly<Record<string, Secret>> {
  const pairs = (variableNamed(variable, environment) ?? '').split(',').flatMap((pair) => {
    const [, name, value] = /^\s*([\w-]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
    return name === undefined || value === undefined
      ? []
      : [[name.toLowerCase(), new Secret(decode(value))] as const];
  });
  return Object.fromEntries(pairs);
}

/** Returns the default variable of a provider's keys. */
function keyVariable(provider: string): string {
  return `${provider.toUpperCase().replaceAll('-', '_')}_API_KEY`;
}

function keysIn(variable: string, environment: Environment): readonly string[] {
  const text = variableNamed(variable, environment) ?? '';
  return text.split(',').flatMap((key) => (key.trim() === '' ? [] : [key.trim()]));
}

/** Finds keys in the variable that can't be real. */
export function findKeyProblems(
  variable: string,
  environment: Environment,
  kind: 'api-key' | 'server-key' = 'api-key',
): readonly Problem[] {
  return keysIn(variable, environment).flatMap((key) => {
    const problem = findSecretProblem(key, kind);
    if (problem === undefined) return [];
    const what = `${problem}; set a real key, or unset it`;
    return [{ where: `${variable} in the environment`, what }];
  });
}

type Keys = { readonly apiKeys: readonly Secret[]; readonly variable: string };

function providerOf(
  name: string,
  written: FileSettings['providers'][string] | undefined,
  { apiKeys, variable }: Keys,
): ProviderSettings {
  const preset = presets[name];
  const baseUrl = written?.baseUrl ?? preset?.baseUrl;
  const kind = written?.kind ?? preset?.kind ?? 'openai';
  // The operator's own server may need no key; the vendors do.
  const needsKey = kind === 'anthropic' || (written?.baseUrl === undefined && preset?.needsKey === true);
  const isUsable = kind === 'demo' || kind === 'plugin' || apiKeys.length > 0 || !needsKey;
  return {
    ...{ kind, apiKeys, keysEnv: variable },
    ...(baseUrl !== undefined && { baseUrl }),
    ...(!isUsable && { needs: variable }),
  };
}

function defaultModel(providers: Readonly<Record<string, ProviderSettings>>): string {
  const { anthropic, openai } = providers;
  if (anthropic && anthropic.needs === undefined) return vendorModels.anthropic;
  if (openai && openai.needs === undefined) return vendorModels.openai;
  return 'demo';
}

/** Returns the model that a name refers to; undefined if there is none. */
export function findModel(
  name: string,
  { providers, models }: Omit<ModelConfig, 'model'>,
): ModelSettings | undefined {
  // Own properties only, because people type these names.
  if (Object.hasOwn(models, name)) return models[name];
  if (name === 'demo') return { provider: 'demo', id: 'demo', fallbacks: [] };
  const slash = name.indexOf('/');
  const provider = slash === -1 ? familyOf(name) : name.slice(0, slash);
  const id = name.slice(slash + 1);
  if (provider === undefined || id === '' || !Object.hasOwn(providers, provider)) return undefined;
  return { provider, id, fallbacks: [] };
}

/** Returns every model named in the settings, some more than once. */
export function namedModels(config: ModelConfig & Pick<Config, 'agents'>): readonly ModelSettings[] {
  const ofAgents = config.agents.flatMap(({ model, titleModel, summaryModel }) => [
    model,
    titleModel,
    summaryModel,
  ]);
  const fallbacks = Object.values(config.models).flatMap((model) => model.fallbacks);
  const names = [config.model, ...Object.keys(config.models), ...ofAgents, ...fallbacks];
  return names.flatMap((name) => (name === undefined ? [] : (findModel(name, config) ?? [])));
}

/** Returns the vendor of an id that is unmistakably its own, and so may be written without it. */
function familyOf(id: string): string | undefined {
  if (/^claude-/.test(id)) return 'anthropic';
  return /^(gpt-|o\d)/.test(id) ? 'openai' : undefined;
}

type NamedModel = { readonly where: string; readonly name: string };

function findNameProblems(settings: FileSettings, config: ModelConfig): readonly Problem[] {
  const named: NamedModel[] = [
    ...(settings.model === undefined ? [] : [{ where: 'model', name: settings.model }]),
    ...settings.agents.flatMap((agent, index) =>
      (['model', 'titleModel', 'summaryModel'] as const).flatMap((key) => {
        const name = agent[key];
        return name === undefined ? [] : [{ where: `agents[${index}].${key}`, name }];
      }),
    ),
    ...Object.entries(settings.models).flatMap(([alias, { fallbacks }]) =>
      fallbacks.map((name, index) => ({ where: `models.${alias}.fallbacks[${index}]`, name })),
    ),
  ];
  const ofProviders = Object.entries(settings.models).flatMap(([alias, { provider }]) =>
    findProviderProblem(`models.${alias}.provider`, provider, config),
  );
  return [...ofProviders, ...named.flatMap((each) => findNameProblem(each, config))];
}

function findNameProblem({ where, name }: NamedModel, config: ModelConfig): readonly Problem[] {
  const model = findModel(name, config);
  if (model !== undefined) {
    // An alias with an invalid provider is reported only once, at the alias.
    return Object.hasOwn(config.models, name) && !Object.hasOwn(config.providers, model.provider)
      ? []
      : findProviderProblem(where, model.provider, config);
  }
  const slash = name.indexOf('/');
  if (slash !== -1) return findProviderProblem(where, name.slice(0, slash), config);
  const meant = suggestName(name, ['demo', ...Object.keys(config.models)]);
  const hint = meant ? ` Did you mean "${meant}"?` : ' Write provider/model, for example openai/gpt-5-mini.';
  return [{ where, what: `"${name}" isn't a model or one of the names in models.${hint}` }];
}

function findProviderProblem(where: string, name: string, { providers }: ModelConfig): readonly Problem[] {
  const provider = Object.hasOwn(providers, name) ? providers[name] : undefined;
  if (provider === undefined) {
    const names = Object.keys(providers);
    const meant = suggestName(name, names);
    const hint = meant
      ? `Did you mean "${meant}"?`
      : `Use one of: ${names.join(', ')}, or add it to providers.`;
    return [{ where, what: `"${name}" isn't a known provider. ${hint}` }];
  }
  if (provider.needs === undefined) return [];
  return [{ where, what: `"${name}" needs a key; set ${provider.needs} in the environment, or use "demo"` }];
}

type Dollars = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};

function inMicroDollars({ input, output, cacheRead, cacheWrite }: Dollars): Dollars {
  return {
    input: microDollars(input),
    output: microDollars(output),
    cacheRead: microDollars(cacheRead),
    cacheWrite: microDollars(cacheWrite),
  };
}
