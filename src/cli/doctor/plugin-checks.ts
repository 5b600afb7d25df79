import type { PluginDefinition } from '#contracts/plugin.ts';
import type { Config } from '../../config/config.ts';
import { settingsOfPlugin } from '../../config/plugin-secrets.ts';
import { workspaceDisks } from '../../processes/disk-gate.ts';
import type { DoctorCheck } from './check.ts';

type ListedPlugin = { readonly id: string; load(): Promise<PluginDefinition> };

/** Has each plugin try what its tools need on this machine. */
export async function checkPlugins(
  config: Config,
  plugins: readonly ListedPlugin[],
): Promise<readonly DoctorCheck[]> {
  return (await Promise.all(plugins.map((plugin) => checkPlugin(config, plugin)))).flat();
}

async function checkPlugin(config: Config, { id, load }: ListedPlugin): Promise<readonly DoctorCheck[]> {
  const definition = await load();
  // Invalid settings are reported by the check of the configuration.
  const parsed = definition.configSchema.safeParse(settingsOfPlugin(config, id));
  if (!parsed.success) return [];
  try {
    const finding = await definition.check?.({ disks: workspaceDisks }, parsed.data);
    return finding === undefined ? [] : [{ name: `plugin ${id}`, ...finding }];
  } catch (error) {
    return [{ name: `plugin ${id}`, result: 'failed', detail: String(error) }];
  }
}
