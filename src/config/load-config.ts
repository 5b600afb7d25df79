// Builds one immutable Config from defaults < file < environment. All problems are reported together;
// nothing is guessed, and unknown names are errors.
import { dirname, resolve } from 'node:path';
import { ParleyError } from '#contracts/errors.ts';
import { agentId } from '#contracts/ids.ts';
import { type ChannelAccounts, readChannelAccounts } from './channel-accounts.ts';
import type { AgentSettings, Config, HiddenSetting } from './config.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { type Credentials, readCredentials, splitList } from './credentials.ts';
import { withDemo } from './demo.ts';
import type { EnvFile } from './env-files.ts';
import {
  type Environment,
  type EnvironmentName,
  environmentNames,
  homeFolder,
  readSurroundings,
} from './environment.ts';
import { type ModelConfig, readModelSettings } from './model-settings.ts';
import { readPluginSecrets, readSkillVariables } from './plugin-secrets.ts';
import { configError, describeIssue, type Problem, showPath, valueAt } from './problem.ts';
import { type FileSettings, fileSchema } from './schema.ts';
import { Secret } from './secret.ts';
import { findSettingsProblems } from './settings-rules.ts';
import { suggestName } from './suggestion.ts';
import { compilePattern } from './text-pattern.ts';
import type { TranscriberSettings } from './transcriber-schema.ts';
import { readTranscriber } from './transcriber-secret.ts';
import { microDollars } from './units.ts';
import { readWebhooks } from './webhook-secrets.ts';
import { findWorkspaceProblems } from './workspace-rules.ts';

/**
 * Reads the file and, unless it is given, the environment with its `.env` files. Throws ParleyError `config_invalid`
 * that lists every problem and its fix.
 */
export function loadConfig(given?: Environment, home: string = homeFolder()): Config {
  const environment = given ?? readSurroundings(home);
  return buildFrom(readConfigFile(environment.values.PARLEY_CONFIG, home), environment, home);
}

/** A configuration to read with; `problem`: what is wrong with the real one, whose other settings are defaults here. */
export type ReadableConfig = { readonly config: Config; readonly problem?: string };

/**
 * Does the same as `loadConfig` for a command that only reads: an invalid configuration is reduced to what says where
 * the data and the gateway are. Throws `config_invalid` if even that isn't valid.
 */
export function loadReadableConfig(given?: Environment, home: string = homeFolder()): ReadableConfig {
  const environment = given ?? readSurroundings(home);
  try {
    return { config: loadConfig(environment, home) };
  } catch (error) {
    if (!(error instanceof ParleyError) || error.code !== 'config_invalid') throw error;
    const config =
      reduced(environment, home, [...dataPlaces, ...addresses]) ?? reduced(environment, home, dataPlaces);
    if (config === undefined) throw error;
    return { config, problem: error.message };
  }
}

/** The settings and variables that say where the data is, and those that say where the gateway listens. */
const dataPlaces = ['dataDir', 'PARLEY_DATA_DIR', 'PARLEY_TOKEN', 'DATABASE_URL'];
const addresses = ['host', 'port', 'PARLEY_HOST', 'PARLEY_PORT'];

/** Returns the configuration with defaults in place of all settings but the given ones; undefined if one is invalid. */
function reduced(environment: Environment, home: string, names: readonly string[]): Config | undefined {
  const only = (settings: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(Object.entries(settings).filter(([name]) => names.includes(name)));
  const { path, content, places } = readConfigFile(environment.values.PARLEY_CONFIG, home);
  const file = {
    content: only({ ...places, ...content }),
    problems: [],
    ...(path !== undefined && { path }),
  };
  try {
    const values: Environment['values'] = only(environment.values);
    return buildFrom(file, { values, unknown: [], files: environment.files ?? [] }, home);
  } catch {
    return undefined;
  }
}

function buildFrom(file: ConfigFile, environment: Environment, home: string): Config {
  const overlaid = overlayEnvironment(file.content, environment);
  const credentials = readCredentials(environment, {
    allowInsecureRedis: file.content.allowInsecureRedis === true,
  });
  // Compiling a parser takes longer than the one file it would read.
  const parsed = fileSchema.safeParse(overlaid.settings, { jitless: true });
  const problems: Problem[] = [
    ...file.problems,
    ...(environment.problems ?? []),
    ...findUnknownVariables(environment),
    ...findProxies(environment),
    ...credentials.problems,
  ];
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const where = placeOf(issue.path, overlaid.sources, file);
      problems.push(...describeIssue(issue, overlaid.settings).map((what) => ({ where, what })));
    }
    throw configError(problems.map((problem) => inItsFile(problem, environment)));
  }
  const { accounts, problems: ofAccounts } = readChannelAccounts(
    parsed.data.channels,
    environment,
    credentials,
  );
  const { plugins, problems: ofSecrets, ...ofServers } = readSecrets(parsed.data, environment);
  const { problems: ofModels, ...modelConfig } = readModelSettings(parsed.data, environment);
  const ofNames = ofModels.map(({ where, what }) => ({
    where: overlaid.sources.has(where) ? `${overlaid.sources.get(where)} in the environment` : where,
    what,
  }));
  const config = withDemo(
    buildConfig(
      { ...parsed.data, plugins },
      {
        credentials,
        accounts,
        modelConfig,
        file,
        home,
        hidden: overlaid.hidden,
        variables: Object.keys(environment.values),
        dataDir: environment.values.PARLEY_DATA_DIR,
        envFiles: environment.files ?? [],
        skills: { environment: readSkillVariables(parsed.data.skills.environment, environment) },
        ...ofServers,
      },
    ),
  );
  problems.push(
    ...findSettingsProblems(parsed.data, credentials),
    ...findWorkspaceProblems(config),
    ...ofNames,
    ...ofAccounts,
    ...ofSecrets,
  );
  if (problems.length > 0) throw configError(problems.map((problem) => inItsFile(problem, environment)));
  return freeze(config);
}

function readSecrets({ plugins, webhooks, media }: FileSettings, environment: Environment) {
  const ofPlugins = readPluginSecrets(plugins, environment);
  const ofWebhooks = readWebhooks(webhooks, environment);
  const ofMedia = readTranscriber(media.transcriber, environment);
  const problems = [ofPlugins, ofWebhooks, ofMedia].flatMap((found) => found.problems);
  return { ...ofPlugins, ...ofWebhooks, ...ofMedia, problems };
}

/** The setting that each non-secret variable overrides. */
const settingOf: Partial<Record<EnvironmentName, readonly string[]>> = {
  ANTHROPIC_BASE_URL: ['providers', 'anthropic', 'baseUrl'],
  OPENAI_BASE_URL: ['providers', 'openai', 'baseUrl'],
  TELEGRAM_API_ROOT: ['channels', 'telegram', 'apiRoot'],
  DISCORD_API_BASE: ['channels', 'discord', 'apiBase'],
  SIGNAL_API_URL: ['channels', 'signal', 'apiUrl'],
  SIGNAL_NUMBER: ['channels', 'signal', 'number'],
  PARLEY_HOST: ['host'],
  PARLEY_PORT: ['port'],
  PARLEY_MODEL: ['model'],
  PARLEY_LOG_LEVEL: ['logLevel'],
  PARLEY_DM_POLICY: ['access', 'dmPolicy'],
  PARLEY_GROUP_POLICY: ['access', 'groupPolicy'],
};

function overlayEnvironment(content: Readonly<Record<string, unknown>>, environment: Environment) {
  const settings = structuredClone(content) as Record<string, unknown>;
  const sources = new Map<string, EnvironmentName>();
  const hidden: HiddenSetting[] = [];
  for (const name of environmentNames) {
    const path = settingOf[name];
    const value = environment.values[name];
    if (path === undefined || value === undefined) continue;
    const meant = name === 'PARLEY_PORT' && /^\d+$/.test(value) ? Number(value) : value;
    const written = valueAt(content, path);
    if (written !== undefined && written !== meant) hidden.push({ setting: path.join('.'), by: name });
    setAt(settings, path, meant);
    sources.set(path.join('.'), name);
  }
  const owners = splitList(environment.values.PARLEY_OWNERS);
  if (owners.length > 0) {
    // Added to the file's owners, never replacing them, so that nobody loses ownership by a forgotten variable.
    settings.owners = [...owners, ...(Array.isArray(settings.owners) ? settings.owners : [])];
    for (const index of owners.keys()) sources.set(`owners.${index}`, 'PARLEY_OWNERS');
  }
  return { settings, sources, hidden };
}

function setAt(settings: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name, ...rest] = path;
  if (name === undefined) return;
  if (rest.length === 0) {
    settings[name] = value;
    return;
  }
  settings[name] ??= {};
  const inner = settings[name];
  // The schema reports anything else.
  if (typeof inner === 'object' && inner !== null) setAt(inner as Record<string, unknown>, rest, value);
}

function placeOf(
  path: readonly PropertyKey[],
  sources: ReadonlyMap<string, EnvironmentName>,
  file: ConfigFile,
): string {
  const variable = sources.get(path.map(String).join('.'));
  if (variable !== undefined) return `${variable} in the environment`;
  return file.path === undefined ? showPath(path) : `${showPath(path)} in ${file.path}`;
}

/** Names the `.env` file in a problem with a variable that comes from it. */
function inItsFile({ where, what }: Problem, { files = [] }: Environment): Problem {
  const [, name = ''] = /^(\w+) in the environment$/.exec(where) ?? [];
  const file = files.find(({ names }) => names.includes(name));
  return { where: file === undefined ? where : `${name} in ${file.path}`, what };
}

/** Finds misspelt variables, which would silently have no effect. Names unlike any known one are ignored. */
function findUnknownVariables(environment: Environment): readonly Problem[] {
  return environment.unknown.flatMap((name) => {
    const suffixes = environmentNames.map((known) => known.replace(/^PARLEY_/, ''));
    const meant = suggestName(name.replace(/^PARLEY_/, ''), suffixes);
    if (meant === undefined) return [];
    const known = environmentNames.find((candidate) => candidate.replace(/^PARLEY_/, '') === meant);
    return [{ where: `${name} in the environment`, what: `isn't a known name. Did you mean ${known}?` }];
  });
}

const proxyNames = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'];

/** Finds proxies, which would be passed by without a word. NO_PROXY=* says that this is what the operator wants. */
function findProxies({ others = {} }: Environment): readonly Problem[] {
  if ([others.NO_PROXY, others.no_proxy].some((hosts) => hosts?.trim() === '*')) return [];
  const what =
    "names a proxy, but Parley can't connect through one yet. Unset it, or set NO_PROXY=* to connect directly";
  return proxyNames.flatMap((name) =>
    others[name] === undefined ? [] : [{ where: `${name} in the environment`, what }],
  );
}

type BuildInput = {
  readonly credentials: Credentials;
  readonly accounts: ChannelAccounts['accounts'];
  readonly modelConfig: ModelConfig & Pick<Config, 'tracing'>;
  readonly file: ConfigFile;
  readonly home: string;
  readonly hidden: Config['hiddenSettings'];
  readonly variables: readonly string[];
  /** From the environment. */
  readonly dataDir: string | undefined;
  readonly envFiles: readonly EnvFile[];
  readonly skills: Config['skills'];
  readonly webhooks: Config['webhooks'];
  readonly transcriber?: TranscriberSettings;
};

function buildConfig(settings: FileSettings, input: BuildInput): Config {
  const { $schema: _schema, dataDir: _dataDir, defaultAgent, ...rest } = settings;
  const { credentials, accounts, file } = input;
  const dataDir = locateDataDir(settings, input);
  const agents = buildAgents(settings, dataDir);
  const { token, redisUrl, databaseUrl, telegramToken, discordToken, signalWebhookSecret } = credentials;
  return {
    ...rest,
    dataDir,
    ...(file.path !== undefined && { configPath: file.path }),
    envFiles: input.envFiles,
    hiddenSettings: input.hidden,
    variables: input.variables,
    skills: input.skills,
    webhooks: input.webhooks,
    media: { ...settings.media, ...(input.transcriber && { transcriber: input.transcriber }) },
    ...(token && { token }),
    ...(redisUrl && { redisUrl }),
    ...(databaseUrl && { databaseUrl }),
    ...input.modelConfig,
    budgets: limitsOf(settings.budgets),
    agents,
    defaultAgent: agentId(defaultAgent ?? settings.agents[0]?.id ?? 'main'),
    bindings: settings.bindings.map((binding) => ({ ...binding, agent: agentId(binding.agent) })),
    identityLinks: withLocalOwner(settings.identityLinks),
    owners: [...new Set([...localOwners, ...settings.owners])],
    access: {
      ...settings.access,
      allowGroups: [...new Set([...settings.access.allowGroups, ...Object.keys(settings.access.groups)])],
    },
    mentionMatchers: settings.groups.mentionPatterns.map(compilePattern),
    channels: {
      ...settings.channels,
      telegram: {
        ...settings.channels.telegram,
        enabled: settings.channels.telegram.enabled ?? telegramToken !== undefined,
        accounts: accounts.telegram,
        ...(telegramToken && { token: telegramToken }),
      },
      discord: {
        ...settings.channels.discord,
        enabled: settings.channels.discord.enabled ?? discordToken !== undefined,
        accounts: accounts.discord,
        ...(discordToken && { token: discordToken }),
      },
      signal: {
        ...settings.channels.signal,
        enabled: isSignalOn(settings.channels.signal),
        accounts: accounts.signal,
        ...(signalWebhookSecret && { webhookSecret: signalWebhookSecret }),
      },
    },
  };
}

/** Says whether Signal is on. An address that only serves further accounts doesn't turn the main account on. */
function isSignalOn({ enabled, apiUrl, number, accounts }: FileSettings['channels']['signal']): boolean {
  const isOnlyOne = Object.keys(accounts).length === 0;
  return enabled ?? (apiUrl !== undefined && (isOnlyOne || number !== undefined));
}

/** The owner of the page's token and of the machine's terminal. */
export const localOwners = ['web:owner', 'terminal:owner'] as const;

/** Says whether the configuration names an owner besides the machine's user. */
export function hasOwner(config: Pick<Config, 'owners'>): boolean {
  return namedOwners(config).length > 0;
}

/** Returns the owners besides the machine's user: `channel:peer`. */
export function namedOwners({ owners }: Pick<Config, 'owners'>): readonly string[] {
  return owners.filter((owner) => !localOwners.some((local) => local === owner));
}

/** Links the page and the terminal as one person, unless the file links them elsewhere. */
function withLocalOwner(links: FileSettings['identityLinks']): Record<string, readonly string[]> {
  const placed = new Set(Object.values(links).flat());
  const free = localOwners.filter((peer) => !placed.has(peer));
  const { owner = [] } = links;
  return free.length > 0 ? { ...links, owner: [...owner, ...free] } : links;
}

function locateDataDir(settings: FileSettings, input: BuildInput): string {
  const { home } = input;
  if (input.dataDir !== undefined) return resolve(home, input.dataDir);
  if (settings.dataDir === undefined) return resolve(home, 'data');
  return resolve(input.file.path === undefined ? home : dirname(input.file.path), settings.dataDir);
}

function buildAgents(settings: FileSettings, dataDir: string): readonly AgentSettings[] {
  return settings.agents.map(({ budgets, ...agent }, index) => ({
    ...agent,
    ...(budgets && { budgets: limitsOf(budgets) }),
    id: agentId(agent.id),
    name: agent.name ?? 'Parley',
    // Further agents get separate workspaces by default, because an agent's tools can access all of its workspace.
    workspace: resolve(dataDir, agent.workspace ?? (index === 0 ? 'workspace' : `workspace-${agent.id}`)),
  }));
}

function limitsOf(budgets: FileSettings['budgets']): Config['budgets'] {
  return Object.fromEntries(
    Object.entries(budgets).map(([scope, dollars]) => [scope, microDollars(dollars)]),
  );
}

/** Freezes plain objects and lists recursively; secrets and compiled patterns protect themselves. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || value instanceof Secret) return value;
  for (const member of Object.values(value)) freeze(member);
  return Object.freeze(value);
}
