/**
 * Watches which modules plugins load: `parley/plugin` is this installation's, whatever the folder, and a file of a plugin
 * is only loaded as it was when its digest was taken, also long after the start.
 */

import { createRequire, type LoadFnOutput, registerHooks } from 'node:module';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { hashOf, type PluginFiles } from './plugin-folder.ts';

/** The modules that plugins may load. */
export interface ModuleGuard {
  /**
   * Lets the modules of these files be loaded, as they are now. Returns what follows their URL: ES modules are known by
   * it, so a process that has loaded the plugin before loads an accepted change, but unchanged files only once.
   */
  admit(files: PluginFiles): string;
  /** Has modules that couldn't be loaded be loaded again, although they are unchanged: what they lacked may be there. */
  forget(files: PluginFiles): void;
  /** Returns a file that only a restart can load again, since it was loaded before it changed. */
  findLoaded(files: PluginFiles): string | undefined;
  /** Takes the hooks away. Modules that are loaded stay. */
  close(): void;
}

type AdmittedFiles = { readonly files: PluginFiles; readonly query: string; readonly hasFailed: boolean };

/** Address of the module that plugins import as `parley/plugin`. */
const kit = new URL('../contracts/plugin-kit.ts', import.meta.url).href;

/** CommonJS and native modules of this process, by their path. */
const { cache: required } = createRequire(import.meta.url);

/** Registers the hooks. Their cost is a few microseconds per module. */
export function createModuleGuard(): ModuleGuard {
  const admitted = new Map<string, AdmittedFiles>();
  let count = 0;
  const ownerOf = (url: string | undefined) => {
    const path = url?.startsWith('file:') ? fileURLToPath(url) : undefined;
    const found = path && [...admitted.values()].find(({ files }) => path.startsWith(files.folder + sep));
    return path && found ? { path, ...found } : undefined;
  };
  const hooks = registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier === 'parley/plugin') return { url: kit, shortCircuit: true };
      const resolved = next(specifier, context);
      const owner = ownerOf(context.parentURL);
      // A required module is known by its path.
      if (!owner || !context.conditions.includes('import')) return resolved;
      if (ownerOf(resolved.url)?.files.folder !== owner.files.folder) return resolved;
      const url = new URL(resolved.url);
      url.search ||= new URL(context.parentURL ?? '').search || owner.query;
      return { ...resolved, url: url.href };
    },
    load: (url, context, next) => {
      const loaded = next(url, context);
      const owner = ownerOf(url);
      if (owner) assertUnchanged(owner.path, loaded.source, owner.files);
      return loaded;
    },
  });
  return {
    admit: (files) => {
      const before = admitted.get(files.folder);
      if (before?.files.digest === files.digest && !before.hasFailed) return before.query;
      count += 1;
      const query = `?${count}-${files.digest.slice(0, 19)}`;
      admitted.set(files.folder, { files, query, hasFailed: false });
      return query;
    },
    forget: ({ folder }) => {
      const failed = admitted.get(folder);
      if (failed) admitted.set(folder, { ...failed, hasFailed: true });
    },
    findLoaded: ({ folder, files }) => {
      const before = admitted.get(folder)?.files.files;
      return [...(before ?? [])].find(
        ([path, digest]) => files.get(path) !== digest && join(folder, path) in required,
      )?.[0];
    },
    close: () => hooks.deregister(),
  };
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
