import type { z } from 'zod';
import type { ChannelEntry } from '#contracts/channel.ts';
import type { PluginDefinition } from '#contracts/plugin.ts';
import { configuredAccounts } from '../channel-host/configured-accounts.ts';
import type { ChannelSettings, Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { findImpossibleId } from '../config/peer.ts';
import { outsidePlugins } from '../config/plugin-schema.ts';
import { settingsOfPlugin } from '../config/plugin-secrets.ts';
import { configError, describeIssue, describeUnknownKey, namesAt, type Problem } from '../config/problem.ts';
import { revealSettings } from '../config/secret.ts';
import { suggestName } from '../config/suggestion.ts';
import { findLinkedWorkspaceProblems } from '../config/workspace-rules.ts';
import { workspaceDisks } from '../processes/disk-gate.ts';
import { textsFor } from '../texts/chat-texts.ts';
import { createOutsideLoader } from './plugin-entries.ts';
import type { CommandOutput } from './print.ts';
import { settingsSources } from './settings-sources.ts';
import { warnOfUnpriced } from './unpriced-models.ts';

/** Parts with settings that only their own schemas can check. */
export type ConfiguredParts = {
  readonly channels: readonly ChannelEntry[];
  readonly plugins: readonly { readonly id: string; load(): Promise<PluginDefinition> }[];
};

export async function checkConfiguration(parts: ConfiguredParts): Promise<CommandOutput> {
  const config = loadConfig();
  await checkConfig(config, parts);
  const problems = await checkOutsidePlugins(config);
  if (problems.length > 0) throw configError(problems);
  const sources = settingsSources(config);
  const unpriced = warnOfUnpriced(config);
  const warnings = unpriced === undefined ? [] : [`${unpriced.detail}; ${unpriced.fix}`];
  const lines = [`The configuration is valid (${sources}).`, ...warnings.map((one) => `Warning: ${one}.`)];
  return { result: { sources, warnings }, lines };
}

/** Throws ParleyError `config_invalid` that lists the problems only channels, plugins, texts and disks can detect. */
export async function checkConfig(config: Config, parts: ConfiguredParts): Promise<void> {
  textsFor(config.language, config.texts);
  const problems = await findPartProblems(config, parts);
  if (problems.length > 0) throw configError(problems);
}

async function findPartProblems(
  config: Config,
  { channels, plugins }: ConfiguredParts,
): Promise<readonly Problem[]> {
  const ofChannels = configuredAccounts(channels, config).map(({ entry, accountName, state }) => {
    const place = `channels.${entry.id}${accountName === undefined ? '' : `.accounts.${accountName}`}`;
    return state.kind === 'on' ? check(place, revealSettings(state.settings), entry.load) : [];
  });
  const ofPlugins = plugins.map(({ id, load }) => check(`plugins.${id}`, settingsOfPlugin(config, id), load));
  const found = await Promise.all([
    ...ofChannels,
    findUnknownNames(config, channels),
    ...ofPlugins,
    findLinkedWorkspaceProblems(config, workspaceDisks),
  ]);
  return [...found.flat(), ...findUnknownChannels(config, channels)];
}

/** Checks plugins from outside as a start does, which only leaves a faulty one out. */
async function checkOutsidePlugins(config: Config): Promise<readonly Problem[]> {
  const entries = await createOutsideLoader()(config);
  const found = entries.map(async (entry) => {
    if ('problem' in entry) return [{ where: `plugins.${entry.plugin}`, what: entry.problem }];
    const { definition, config: settings } = entry;
    return check(`plugins.${definition.id}.config`, settings, async () => definition);
  });
  return (await Promise.all(found)).flat();
}

type Load = () => Promise<{ readonly configSchema: z.ZodType }>;

async function check(where: string, settings: unknown, load: Load): Promise<readonly Problem[]> {
  const { configSchema } = await load();
  const { error } = configSchema.safeParse(settings);
  return (error?.issues ?? []).flatMap((issue) => {
    const place = [where, ...issue.path.map(String)].join('.');
    // A part words its own issues; only for an unknown name is the nearest known one suggested.
    const what =
      issue.code === 'unrecognized_keys' ? describeIssue(issue, settings, configSchema) : [issue.message];
    return what.map((one) => ({ where: place, what: one }));
  });
}

/**
 * Checks what no stage of the start checks. Throws ParleyError `config_invalid` for workspaces that lead to Parley's
 * own files, and for unknown channels and unknown names in their settings, since those pass the file's own schema.
 */
export async function checkForStart(config: Config, channels: readonly ChannelEntry[]): Promise<void> {
  const found = await Promise.all([
    findUnknownNames(config, channels),
    findLinkedWorkspaceProblems(config, workspaceDisks),
  ]);
  const problems = [...found.flat(), ...findUnknownChannels(config, channels)];
  if (problems.length > 0) throw configError(problems);
}

/** Also checks channels that are off; a channel is loaded only if it has settings that only it can know. */
async function findUnknownNames(
  config: Config,
  channels: readonly ChannelEntry[],
): Promise<readonly Problem[]> {
  const settingsOf = new Map<string, ChannelSettings>(Object.entries(config.channels));
  const found = channels.map(async ({ id, load }) => {
    const places = settingsPlaces(`channels.${id}`, settingsOf.get(id));
    const common = [...namesAt(['channels', id]), 'accounts', 'tokenEnv', 'needs'];
    if (places.every(({ names }) => names.every((name) => common.includes(name)))) return [];
    const own = [...namesAt([], (await load()).configSchema), 'enabled'];
    return places.flatMap(({ where, names }) =>
      names
        .filter((name) => !own.includes(name) && !common.includes(name))
        .map((name) => ({ where, what: describeUnknownKey(name, own) })),
    );
  });
  return (await Promise.all(found)).flat();
}

/** `id`: of a person or group on the channel. */
type NamedChannel = { readonly where: string; readonly name: string; readonly id?: string };

/** Finds misspelt channels, and ids that a channel never issues: such rules would silently apply to nobody. */
function findUnknownChannels(config: Config, channels: readonly ChannelEntry[]): readonly Problem[] {
  // A plugin's channel has the plugin's name.
  const added = outsidePlugins(config.plugins).keys();
  const own = [...Object.keys(config.channels), ...channels.map(({ id }) => String(id))];
  const known = [...new Set([...own, ...added])];
  return namedChannels(config).flatMap(({ where, name, id }) => {
    const what = id === undefined ? undefined : findImpossibleId(name, id);
    if (what !== undefined) return [{ where, what }];
    if (known.includes(name)) return [];
    const meant = suggestName(name, known);
    const hint = meant === undefined ? `Use one of: ${known.join(', ')}.` : `Did you mean "${meant}"?`;
    return [{ where, what: `"${name}" isn't a channel. ${hint}` }];
  });
}

function namedChannels({
  access,
  bindings,
  identityLinks,
  owners,
  queue,
  reset,
}: Config): readonly NamedChannel[] {
  const keys = (where: string, record: object): NamedChannel[] =>
    Object.keys(record).map((name) => ({ where, name }));
  const refs = (where: string, list: readonly string[]): NamedChannel[] =>
    list.map((ref) => {
      const [name = '', ...id] = ref.split(':');
      return { where, name, id: id.join(':') };
    });
  return [
    ...keys('queue.channels', queue.channels),
    ...keys('queue.waitingNotice.channels', queue.waitingNotice.channels),
    ...keys('reset.channels', reset.channels),
    ...bindings.flatMap(({ channel }, index) =>
      channel === undefined ? [] : [{ where: `bindings[${index}].channel`, name: channel }],
    ),
    ...refs('owners', owners),
    ...refs('access.allowFrom', access.allowFrom),
    ...refs('access.allowGroups', access.allowGroups),
    ...Object.entries(access.groups).flatMap(([group, { allowFrom = [] }]) =>
      refs(`access.groups.${group}.allowFrom`, allowFrom),
    ),
    ...Object.entries(identityLinks).flatMap(([name, list]) => refs(`identityLinks.${name}`, list)),
    ...refs('queue.conversations', Object.keys(queue.conversations)),
  ];
}

/** Lists the settings of a channel and its accounts; one that an account inherits appears only where it is written. */
function settingsPlaces(place: string, settings: ChannelSettings | undefined) {
  const { accounts = {}, ...own } = settings ?? {};
  const ofAccounts = Object.entries(accounts).map(([name, account]) => ({
    where: `${place}.accounts.${name}`,
    names: Object.keys(account).filter((setting) => !(setting in own)),
  }));
  return [{ where: place, names: Object.keys(own) }, ...ofAccounts];
}
