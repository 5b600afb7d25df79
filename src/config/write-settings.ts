import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs';
import { chown, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { isImage, parleyCommand } from '#channel-kit/own-commands.ts';
import { parseJson } from '#channel-kit/parse-json.ts';
import { ParleyError } from '#contracts/errors.ts';
import { configFilePath, readConfigFile } from './config-file.ts';
import type { Environment } from './environment.ts';
import { valueAt } from './problem.ts';

/**
 * Settings to write to the configuration file: lists are extended, undefined removes, a function returns the new value of
 * the old one, anything else is replaced.
 */
export type SettingsChange = { readonly [name: string]: unknown };

/** The result; `isWritten` is false for a file with comments, which would be lost, so it must be changed by hand. */
export type WrittenSettings = {
  readonly path: string;
  readonly isWritten: boolean;
  /** The new content of the file, or what to add to it. */
  readonly text: string;
  /** Settings removed from the file, such as `providers.openai.baseUrl`. */
  readonly removed: readonly string[];
};

/** Changes the configuration file, keeping all other settings. Throws `config_invalid` for an invalid file. */
export async function writeSettings(
  change: SettingsChange,
  { values }: Environment,
  home: string,
): Promise<WrittenSettings> {
  const path = configFilePath(values.PARLEY_CONFIG, home);
  const before = await readIfThere(path);
  const parsed = before === undefined ? { content: {}, problems: [] } : readConfigFile(path, home);
  if (parsed.problems.length > 0)
    throw new ParleyError('config_invalid', `${path} isn't valid. Run: ${parleyCommand} config check`);
  const content = before === undefined ? {} : parsePlain(before);
  const text = JSON.stringify(merge(content ?? {}, change) ?? {}, undefined, indentOf(before));
  if (content !== undefined) await replaceFile(path, `${text}\n`);
  const removed = findRemovals(change).filter((setting) => valueAt(parsed.content, setting) !== undefined);
  return {
    ...{ path, isWritten: content !== undefined, text },
    removed: removed.map((setting) => setting.join('.')),
  };
}

/** Returns the indent of the file's first setting; two spaces for a new file. */
function indentOf(text = ''): string {
  return /^\s*\{\s*\n([ \t]+)"/.exec(text)?.[1] ?? '  ';
}

function findRemovals(change: SettingsChange, at: readonly string[] = []): readonly (readonly string[])[] {
  return Object.entries(change).flatMap(([name, value]) => {
    if (isRecord(value)) return findRemovals(value, [...at, name]);
    return value === undefined ? [[...at, name]] : [];
  });
}

function parsePlain(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Sets variables in the `.env` with precedence, keeping its other lines, and returns its path. */
export async function writeVariables(
  variables: Readonly<Record<string, string>>,
  environment: Environment,
  home: string,
): Promise<string> {
  const path = envFileFor(environment, home);
  const before = (await readIfThere(path)) ?? '';
  await replaceFile(path, withVariables(before, variables), 0o600);
  return path;
}

/**
 * Throws ParleyError `invalid_input` if the configuration file or `.env` can't be written, for example on a read-only
 * mount. Changes nothing.
 */
export async function assertWritable(environment: Environment, home: string): Promise<void> {
  const files = [configFilePath(environment.values.PARLEY_CONFIG, home), envFileFor(environment, home)];
  for (const file of files) {
    const fault = findFolderFault(file);
    if (fault === undefined) continue;
    const hint = isImage
      ? 'In a container its files come from the host: write config/parley.config.json and .env there, as docs/docker.md shows.'
      : 'Run this as its owner, or write the settings yourself, as docs/configuration.md shows.';
    throw new ParleyError('invalid_input', `${fault}, so Parley can't write ${file}. ${hint}`);
  }
}

/** Names the folder that keeps a file from being written, or a new one from being created; undefined when none does. */
export function findFolderFault(file: string): string | undefined {
  // Writing replaces the file, so the folder's permissions decide.
  let folder = dirname(existsSync(file) ? realpathSync(file) : file);
  while (!existsSync(folder)) folder = dirname(folder);
  if (!statSync(folder).isDirectory()) return `${folder} isn't a folder`;
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch {
    return `${folder} isn't writable for you`;
  }
}

/** Returns the `.env` already read, or the path of a new one: in the folder of PARLEY_DATA_DIR, or else in `home`. */
function envFileFor({ files = [], values }: Environment, home: string): string {
  return files[0]?.path ?? join(resolve(home, values.PARLEY_DATA_DIR ?? '.'), '.env');
}

/** Returns the text with each variable set once, on its existing line if any. Values must be a single line. */
export function withVariables(text: string, variables: Readonly<Record<string, string>>): string {
  const rest = new Map(Object.entries(variables));
  const lines = text.split('\n').flatMap((line) => {
    const [, name = ''] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=/.exec(line) ?? [];
    if (!Object.hasOwn(variables, name)) return [line];
    const value = rest.get(name);
    rest.delete(name);
    // A second line with the same name would override the first.
    return value === undefined ? [] : [`${name}=${quoted(value)}`];
  });
  if (rest.size > 0 && lines.at(-1) === '') lines.pop();
  return `${[...lines, ...[...rest].map(([name, value]) => `${name}=${quoted(value)}`)].join('\n')}${rest.size > 0 ? '\n' : ''}`;
}

function quoted(value: string): string {
  if (/^[\w:./@,+=-]*$/.test(value)) return value;
  const mark = ["'", '"', '`'].find((each) => !value.includes(each));
  if (mark === undefined || /[\r\n]/.test(value))
    throw new ParleyError('invalid_input', "A value with line breaks or every kind of quote can't be kept.");
  return `${mark}${value}${mark}`;
}

/** Merges recursively; returns undefined when nothing is left. */
function merge(before: unknown, change: unknown): unknown {
  if (typeof change === 'function') return change(before);
  if (Array.isArray(before) && Array.isArray(change)) return [...new Set([...before, ...change])];
  if (!isRecord(change)) return change;
  const old = isRecord(before) ? before : {};
  const changed = Object.entries(change).map(([name, value]) => [name, merge(old[name], value)]);
  const all = Object.entries({ ...old, ...Object.fromEntries(changed) });
  const left = all.filter(([, value]) => value !== undefined);
  return left.length === 0 && changed.length > 0 ? undefined : Object.fromEntries(left);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Replaces the file atomically, so that a crash leaves the old one. Links are followed, and the owner is kept. */
async function replaceFile(path: string, text: string, mode?: number): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const before = await stat(target).catch(() => undefined);
  await mkdir(dirname(target), { recursive: true });
  const next = `${target}.${process.pid}.new`;
  try {
    await writeFile(next, text, { mode: mode ?? before?.mode ?? 0o644, flush: true });
    if (before !== undefined && process.getuid?.() === 0) await chown(next, before.uid, before.gid);
    await rename(next, target);
  } finally {
    await rm(next, { force: true });
  }
}
