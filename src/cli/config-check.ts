import type { z } from 'zod';
import type { ChannelEntry } from '#contracts/channel.ts';
import type { PluginDefinition } from '#contracts/plugin.ts';
import { configuredAccounts } from '../channel-host/configured-accounts.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { configError, type Problem } from '../config/problem.ts';
import { revealSettings } from '../config/secret.ts';
import { noticesFor } from '../texts/notices.ts';
import type { ExitCode } from './exit-code.ts';
import { settingsSources } from './settings-sources.ts';

/** A part with its own settings, which only its own schema checks. */
export type ConfiguredParts = {
  readonly channels: readonly ChannelEntry[];
  readonly plugins: readonly { readonly id: string; load(): Promise<PluginDefinition> }[];
};

export async function runConfigCheck(parts: ConfiguredParts): Promise<ExitCode> {
  const config = loadConfig();
  await checkConfig(config, parts);
  process.stdout.write(`The configuration is valid (${settingsSources(config)}).\n`);
  return 0;
}

/** Throws ParleyError `config_invalid` that names every problem that only channels, plugins and texts can see. */
export async function checkConfig(config: Config, parts: ConfiguredParts): Promise<void> {
  noticesFor(config.language, config.texts);
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
  const ofPlugins = plugins.map(({ id, load }) =>
    check(`plugins.${id}`, new Map(Object.entries(config.plugins)).get(id) ?? {}, load),
  );
  return (await Promise.all([...ofChannels, ...ofPlugins])).flat();
}

async function check(
  where: string,
  settings: unknown,
  load: () => Promise<{ readonly configSchema: z.ZodType }>,
): Promise<readonly Problem[]> {
  const { configSchema } = await load();
  const { error } = configSchema.safeParse(settings);
  return (error?.issues ?? []).map((issue) => ({
    where: [where, ...issue.path.map(String)].join('.'),
    what: issue.message,
  }));
}
