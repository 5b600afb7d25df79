import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { PluginDefinition } from '#contracts/plugin.ts';
import type { Config } from '../../config/config.ts';
import { settingsOfPlugin } from '../../config/plugin-secrets.ts';
import { workspaceDisks } from '../../processes/disk-gate.ts';
import { createOutsideLoader } from '../plugin-entries.ts';
import { type DoctorCheck, failed, ok } from './check.ts';

type ListedPlugin = { readonly id: string; load(): Promise<PluginDefinition> };

/** Has each plugin try what its tools need on this machine. */
export async function checkPlugins(
  config: Config,
  plugins: readonly ListedPlugin[],
): Promise<readonly DoctorCheck[]> {
  const own = plugins.map((plugin) => checkPlugin(config, plugin));
  return [...(await Promise.all(own)).flat(), ...(await checkOutside(config))];
}

/** Loads each plugin from outside as a start does, without its setup. */
async function checkOutside(config: Config): Promise<readonly DoctorCheck[]> {
  const entries = await createOutsideLoader()(config);
  const found = entries.map(async (entry) => {
    if ('problem' in entry) {
      const fix = `correct it, or leave the plugin out: ${parleyCommand} plugins remove ${entry.plugin}`;
      return [failed(`plugin ${entry.plugin}`, entry.problem, fix)];
    }
    const { definition, config: settings } = entry;
    const { id } = definition;
    const { error } = definition.configSchema.safeParse(settings);
    if (error !== undefined)
      return [failed(`plugin ${id}`, z.prettifyError(error), `correct plugins.${id}.config`)];
    const findings = await runCheck(definition, settings);
    return findings.length > 0 ? findings : [ok(`plugin ${id}`, 'its files are the accepted ones')];
  });
  return (await Promise.all(found)).flat();
}

async function checkPlugin(config: Config, { id, load }: ListedPlugin): Promise<readonly DoctorCheck[]> {
  const definition = await load();
  // Invalid settings are reported by the check of the configuration.
  const parsed = definition.configSchema.safeParse(settingsOfPlugin(config, id));
  if (!parsed.success) return [];
  return runCheck(definition, parsed.data);
}

async function runCheck(definition: PluginDefinition, settings: unknown): Promise<readonly DoctorCheck[]> {
  const name = `plugin ${definition.id}`;
  try {
    const finding = await definition.check?.({ disks: workspaceDisks }, settings);
    return finding === undefined ? [] : [{ name, ...finding }];
  } catch (error) {
    return [{ name, result: 'failed', detail: String(error) }];
  }
}
