/**
 * Finds the files of a plugin from outside and takes their digest. Every file counts, since a plugin may load any of
 * them; only `.git` and the links in `node_modules/.bin` don't, and the module guard lets nothing be loaded from there.
 */

import { createHash } from 'node:crypto';
import { lstat, readdir, readFile, realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { parleyCommand } from '#channel-kit/own-commands.ts';

/** Bounds of one plugin: a larger one would make each start slow. */
export const maxPluginFiles = 2_000;
const maxPluginBytes = 20 * 1024 * 1024;
const maxDepth = 20;

/** The files of a plugin as they were when they were read. */
export type PluginFiles = {
  /** Absolute, without links. */
  readonly folder: string;
  /** `sha256-` and 64 hexadecimal digits. */
  readonly digest: string;
  /** Digest of each file by its path in the folder, with `/`. */
  readonly files: ReadonlyMap<string, string>;
};

/** `problem`: a sentence that says what to do. */
export type FolderResult =
  | ({ readonly kind: 'read' } & PluginFiles)
  | { readonly kind: 'refused'; readonly problem: string };

/** Where plugins may come from. */
export type PluginPlaces = {
  /** The folder of the configuration file: relative paths and packages are looked up from there. */
  readonly base: string;
  /** Folders that agents or strangers write to: nothing in them can become a plugin. */
  readonly foreign: readonly string[];
};

/** Says whether `from` names a folder; anything else names an installed package. */
export function isFolderName(from: string): boolean {
  return /^\.{0,2}[/\\]|^\.{1,2}$/.test(from) || isAbsolute(from);
}

/** Reads the files of the folder or package that `from` names. Rejects only if the disk fails. */
export async function readPluginFiles(from: string, { base, foreign }: PluginPlaces): Promise<FolderResult> {
  const path = isFolderName(from) ? resolve(base, from) : join(base, 'node_modules', ...from.split('/'));
  if (!isFolderName(from) && !/^(?:@[a-z0-9-~][a-z0-9-._~]*\/)?[a-z0-9-~][a-z0-9-._~]*$/i.test(from))
    return refuse(`"${from}" is neither a folder nor a package: write a folder as ./name`);
  const folder = await realpath(path).catch(() => undefined);
  if (folder === undefined || !(await lstat(folder)).isDirectory())
    return refuse(await describeAbsence(from, path, base));
  for (const place of await Promise.all(foreign.map((one) => realpath(one).catch(() => resolve(one))))) {
    if (isWithin(folder, place) || isWithin(place, folder))
      return refuse(
        `${folder} and ${place}, where agents or other people put files, lie in each other, so others could change the plugin. Move it to a folder of your own and run: ${parleyCommand} plugins add <folder>`,
      );
  }
  return takeDigest(folder);
}

async function describeAbsence(from: string, path: string, base: string): Promise<string> {
  if (isFolderName(from))
    return `there is no folder ${path}. Correct the path, put it back, or, if a plugin came from there: ${parleyCommand} plugins remove <id>`;
  const packages = join(base, 'node_modules');
  const namesakes = [resolve(from), resolve(base, from)].map((one) => realpath(one).catch(() => undefined));
  const isFolder = (await Promise.all(namesakes)).some((one) => one !== undefined);
  return isFolder
    ? `there is no package "${from}" in ${packages}; if you mean the folder, write ./${from}`
    : `there is no package "${from}" in ${packages}. Install it there: npm install --ignore-scripts ${from}`;
}

async function takeDigest(folder: string): Promise<FolderResult> {
  const found = await listFiles(folder);
  if (typeof found === 'string') return refuse(found);
  const files = new Map<string, string>();
  const whole = createHash('sha256');
  // By code units, so that the order is the same everywhere.
  for (const path of found.toSorted((a, b) => (a < b ? -1 : 1))) {
    const digest = hashOf(await readFile(join(folder, path)));
    files.set(path, digest);
    whole.update(`${path}\0${digest}\0`);
  }
  return { kind: 'read', folder, digest: `sha256-${whole.digest('hex')}`, files };
}

/** Returns the digest of a file's content. */
export function hashOf(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Lists the files below a folder; a sentence if one of them can't be part of a plugin. */
async function listFiles(folder: string): Promise<readonly string[] | string> {
  const files: string[] = [];
  let bytes = 0;
  const open = [''];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (at.split('/').length > maxDepth) return `${at} is more than ${maxDepth} folders deep; flatten it`;
    for (const entry of await readdir(join(folder, at), { withFileTypes: true })) {
      const path = at === '' ? entry.name : `${at}/${entry.name}`;
      if (entry.isDirectory()) {
        if (entry.name !== '.git') open.push(path);
        continue;
      }
      if (entry.isSymbolicLink()) {
        if (/(?:^|\/)node_modules\/\.bin$/.test(at)) continue;
        return `${path} is a symbolic link, which could lead to other files later; replace it by a copy`;
      }
      if (!entry.isFile()) return `${path} is neither a file nor a folder; remove it`;
      bytes += (await lstat(join(folder, path))).size;
      files.push(path);
      if (files.length > maxPluginFiles)
        return `it has more than ${maxPluginFiles} files; leave out what it doesn't need, such as development packages`;
      if (bytes > maxPluginBytes)
        return `it has more than ${maxPluginBytes / 1024 / 1024} MB; leave out what it doesn't need`;
    }
  }
  return files;
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way));
}

function refuse(problem: string): FolderResult {
  return { kind: 'refused', problem };
}
