/** Loads a plugin that the owner has added: its digest first, then its code, then its shape. */

import { readFile } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import type { PluginDefinition } from '#contracts/plugin.ts';
import type { Config } from '../config/config.ts';
import { homeFolder } from '../config/environment.ts';
import { bundledPlugins, outsidePlugin } from '../config/plugin-schema.ts';
import { settingsOfPlugin, variableReference } from '../config/plugin-secrets.ts';
import { describeIssue } from '../config/problem.ts';
import type { ModuleGuard } from './module-guard.ts';
import { placeOf } from './plugin-findings.ts';
import { type PluginFiles, type PluginPlaces, readPluginFiles } from './plugin-folder.ts';
import { withinSetupTime } from './setup-time.ts';

/** A plugin from outside, or the reason why it stays off. */
type LoadResult =
  | { readonly kind: 'off' }
  | { readonly kind: 'ready'; readonly definition: PluginDefinition; readonly config: unknown }
  /** `problem` is a sentence for the owner. `waits`: a restart would load it, and the version that runs keeps running. */
  | { readonly kind: 'failed'; readonly problem: string; readonly waits?: true };

/** Returns where plugins are looked up, and the folders from which none may come. */
export function pluginPlaces({
  configPath,
  agents,
  dataDir,
}: Pick<Config, 'configPath' | 'agents' | 'dataDir'>) {
  return {
    base: configPath === undefined ? homeFolder() : dirname(configPath),
    // Files that people send are stored in these two.
    foreign: [
      ...agents.map(({ workspace }) => workspace),
      ...['media', 'channels'].map((name) => join(dataDir, name)),
    ],
  } satisfies PluginPlaces;
}

/** Loads one plugin of the configuration. Never rejects. */
export async function loadOutsidePlugin(
  config: Pick<Config, 'plugins' | 'configPath' | 'agents' | 'dataDir'>,
  id: string,
  guard: ModuleGuard,
): Promise<LoadResult> {
  const problem = findIdProblem(id);
  if (problem !== undefined) return failed(problem);
  const written = settingsOfPlugin(config, id);
  const parsed = outsidePlugin.safeParse(written);
  if (!parsed.success) return failed(describeSettings(id, written, parsed.error));
  const { enabled, from, digest, config: own = {} } = parsed.data;
  if (!enabled) return { kind: 'off' };
  const unset = findUnset(own);
  if (unset !== undefined)
    return failed(`its settings need the variable ${unset}: set it in the environment or in .env.`);
  try {
    const files = await readPluginFiles(from, pluginPlaces(config));
    if (files.kind === 'refused') return failed(`${files.problem}.`);
    if (digest === undefined)
      return failed(
        `it has no digest, so nobody has accepted its files yet. Look at them, then run: ${parleyCommand} plugins check ${id} --accept`,
      );
    if (files.digest !== digest)
      return failed(
        `its files have changed since they were accepted. See what changed: ${parleyCommand} plugins check ${id}`,
      );
    const loaded = guard.findLoaded(files);
    if (loaded !== undefined)
      return {
        ...failed(`${loaded} has changed, and Node.js loads such a file only once. Restart Parley.`),
        waits: true,
      };
    const definition = await importPlugin(files, guard);
    if (typeof definition === 'string') {
      guard.forget(files);
      return failed(definition);
    }
    if (definition.id !== id)
      return failed(`it calls itself "${definition.id}". Rename plugins.${id} to plugins.${definition.id}.`);
    return { kind: 'ready', definition, config: own };
  } catch (error) {
    return failed(`its files can't be read: ${messageOf(error)}.`);
  }
}

/** Says why no plugin may have this name; undefined if it may. */
export function findIdProblem(id: string): string | undefined {
  if (bundledPlugins.includes(id) || ['core', 'subagents'].includes(id))
    return `"${id}" is the name of a part of Parley. Give the plugin another id.`;
  if (/^[a-z][a-z0-9-]{0,31}$/.test(id)) return undefined;
  return `"${id}" isn't an id: use up to 32 small letters, digits and hyphens, beginning with a letter.`;
}

function describeSettings(id: string, written: unknown, { issues }: z.ZodError): string {
  const isAbsent = typeof written === 'object' && written !== null && !('from' in written);
  if (isAbsent)
    return `there is no plugin of this name, and plugins.${id} has no "from". Correct the name (Parley's own: ${bundledPlugins.join(', ')}), or add a plugin: ${parleyCommand} plugins add <folder>`;
  return issues
    .flatMap((issue) => {
      const place = [`plugins.${id}`, ...issue.path.map(String)].join('.');
      return describeIssue(issue, written, outsidePlugin).map((what) => `${place}: ${what}.`);
    })
    .join(' ');
}

function findUnset(value: unknown): string | undefined {
  if (typeof value === 'string') return variableReference.exec(value)?.[1];
  if (typeof value !== 'object' || value === null) return undefined;
  for (const member of Object.values(value)) {
    const unset = findUnset(member);
    if (unset !== undefined) return unset;
  }
  return undefined;
}

/** Runs the plugin's code. Returns a sentence if that fails, or if it doesn't export a plugin. */
export async function importPlugin(
  files: PluginFiles,
  guard: ModuleGuard,
): Promise<PluginDefinition | string> {
  const entry = await findEntry(files);
  if (typeof entry !== 'object') return entry;
  const url = pathToFileURL(join(files.folder, entry.path)).href + guard.admit(files);
  try {
    const loading: Promise<Record<string, unknown>> = import(url);
    const loaded = await withinSetupTime(loading);
    if (loaded === 'late')
      return `${entry.path} doesn't finish loading. Do what takes time in setup, or later.`;
    return asDefinition(loaded, entry.path);
  } catch (error) {
    return `${entry.path} can't be loaded: ${adviceFor(error)}`;
  }
}

/** Finds the file that exports the plugin: package.json's exports or main, otherwise index.ts or index.js. */
async function findEntry({ folder, files }: PluginFiles): Promise<{ readonly path: string } | string> {
  const named = files.has('package.json') ? await entryOf(join(folder, 'package.json')) : undefined;
  if (named !== undefined) {
    const path = posix.normalize(named);
    if (files.has(path)) return { path };
    return `package.json names ${named}, which isn't one of its files. Build it, or correct "exports".`;
  }
  const path = ['index.ts', 'index.js', 'index.mjs'].find((name) => files.has(name));
  if (path !== undefined) return { path };
  return [...files.keys()].some((name) => /^(openclaw\.plugin\.json|\.claude-plugin\/)/.test(name))
    ? 'it is a plugin for another program. See docs/plugins.md for what Parley loads.'
    : 'it has no index.ts or index.js, and its package.json names no other file in "exports".';
}

async function entryOf(path: string): Promise<string | undefined> {
  try {
    const read: unknown = JSON.parse(await readFile(path, 'utf8'));
    return typeof read === 'object' && read !== null ? fileNamed(read) : undefined;
  } catch {
    return undefined;
  }
}

function fileNamed(manifest: object): string | undefined {
  const exports: unknown = 'exports' in manifest ? manifest.exports : undefined;
  const main: unknown = 'main' in manifest ? manifest.main : undefined;
  let target = exports;
  for (const key of ['.', 'import', 'node', 'default'])
    if (typeof target === 'object' && target !== null && key in target) target = Reflect.get(target, key);
  if (typeof target === 'string') return target;
  return typeof main === 'string' ? main : undefined;
}

function asDefinition(loaded: Readonly<Record<string, unknown>>, entry: string): PluginDefinition | string {
  const found = loaded.plugin ?? unwrapped(loaded.default);
  const form = 'export const plugin = definePlugin({ id, setup(api) { … } })';
  if (found === undefined) return `${entry} exports no plugin. Write: ${form}`;
  if (typeof found !== 'object' || found === null)
    return `${entry} exports a ${typeof found}, not a plugin. Write: ${form}`;
  const { id, setup, configSchema, check } = found as Partial<Record<keyof PluginDefinition, unknown>>;
  if (typeof id !== 'string') return `${entry}: the plugin has no id. Write: ${form}`;
  if (typeof setup !== 'function') return `${entry}: the plugin has no setup function. Write: ${form}`;
  const parse = typeof configSchema === 'object' && configSchema !== null && 'safeParse' in configSchema;
  if (!parse)
    return `${entry}: configSchema isn't a zod schema. Use z from parley/plugin, or definePlugin, which needs none.`;
  if (check !== undefined && typeof check !== 'function') return `${entry}: check isn't a function.`;
  // Its members have just been checked.
  return found as PluginDefinition;
}

/** Compilers wrap the default export of CommonJS once more. */
function unwrapped(exported: unknown): unknown {
  const isWrapped = typeof exported === 'object' && exported !== null && '__esModule' in exported;
  return isWrapped && 'default' in exported ? exported.default : exported;
}

function adviceFor(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const [message] = messageOf(error).split('\n');
  switch (code) {
    case 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING':
      return 'an installed package has to contain JavaScript; only a folder may contain TypeScript.';
    case 'ERR_INVALID_TYPESCRIPT_SYNTAX':
      return `${message}${placeOf(error)}.`;
    case 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX':
      return `${message}${placeOf(error)}. Node.js only strips types: no enum, namespace, parameter property or decorator.`;
    case 'ERR_DLOPEN_FAILED':
      return `${message}. Rebuild it for the Node.js that Parley runs on, ${process.version}: npm rebuild`;
    case 'MODULE_NOT_FOUND':
    case 'ERR_MODULE_NOT_FOUND':
      return `${message}. Install what it needs in its folder, and write imports with their file's ending.`;
    default:
      return `${message}${placeOf(error)}`;
  }
}

function failed(problem: string) {
  return { kind: 'failed', problem } as const;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
