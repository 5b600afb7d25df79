/**
 * Watches which modules plugins load: `parley/plugin` is this installation's, whatever the folder, and a file of a plugin
 * is only loaded as it was when its digest was taken, also long after the start.
 */

import { type LoadFnOutput, registerHooks } from 'node:module';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { hashOf, type PluginFiles } from './plugin-folder.ts';

export interface ModuleGuard {
  /** Lets the modules of these files be loaded, as they are now. */
  admit(files: PluginFiles): void;
  /** Takes the hooks away. Modules that are loaded stay. */
  close(): void;
}

/** Address of the module that plugins import as `parley/plugin`. */
const kit = new URL('../contracts/plugin-kit.ts', import.meta.url).href;

/** Registers the hooks. Their cost is a few microseconds per module. */
export function createModuleGuard(): ModuleGuard {
  const admitted = new Map<string, PluginFiles>();
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'parley/plugin' ? { url: kit, shortCircuit: true } : next(specifier, context),
    load: (url, context, next) => {
      const loaded = next(url, context);
      const path = url.startsWith('file:') ? fileURLToPath(url) : undefined;
      const plugin = path && [...admitted.values()].find(({ folder }) => path.startsWith(folder + sep));
      if (path && plugin) assertUnchanged(path, loaded.source, plugin);
      return loaded;
    },
  });
  return { admit: (files) => void admitted.set(files.folder, files), close: () => hooks.deregister() };
}

function assertUnchanged(path: string, source: LoadFnOutput['source'], { folder, files }: PluginFiles): void {
  const name = relative(folder, path).split(sep).join('/');
  const digest =
    typeof source === 'string' ? hashOf(source) : source && hashOf(new Uint8Array(source as ArrayBuffer));
  if (digest !== undefined && files.get(name) === digest) return;
  throw new Error(
    `${name} has changed since the plugin was checked. Restart Parley, or see: ${parleyCommand} plugins check`,
  );
}
