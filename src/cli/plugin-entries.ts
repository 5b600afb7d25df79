import type { Config } from '../config/config.ts';
import { outsidePlugins } from '../config/plugin-schema.ts';
import type { ModuleGuard } from '../plugin-host/module-guard.ts';
import type { PluginEntry } from '../plugin-host/replace-plugins.ts';

/** Loads the plugins from outside, in the order of the configuration. Their code is only read if there are any. */
export type OutsideLoader = (config: Config) => Promise<readonly PluginEntry[]>;

/** Creates the loader of this process, which loads unchanged files only once. */
export function createOutsideLoader(): OutsideLoader {
  // It stays for as long as the process, since a plugin may load more of itself at any time.
  let guard: ModuleGuard | undefined;
  return async (config) => {
    const ids = [...outsidePlugins(config.plugins).keys()];
    if (ids.length === 0) return [];
    const [{ loadOutsidePlugin }, { createModuleGuard }] = await Promise.all([
      import('../plugin-host/outside-plugin.ts'),
      import('../plugin-host/module-guard.ts'),
    ]);
    guard ??= createModuleGuard();
    const entries: PluginEntry[] = [];
    for (const plugin of ids) {
      const loaded = await loadOutsidePlugin(config, plugin, guard);
      if (loaded.kind === 'ready')
        entries.push({ definition: loaded.definition, config: loaded.config, isOutside: true });
      else if (loaded.kind === 'failed') {
        const { problem, waits } = loaded;
        entries.push({ plugin, problem: `It is off: ${problem}`, ...(waits && { waits }) });
      }
    }
    return entries;
  };
}
