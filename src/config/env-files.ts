import { closeSync, openSync, readSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import type { Problem } from './problem.ts';

/** A `.env` file that was read. */
export type EnvFile = {
  /** Absolute. */
  readonly path: string;
  /** Names whose values come from this file. */
  readonly names: readonly string[];
  /** Names that it sets without effect, because the environment or a file with precedence sets them too. */
  readonly hidden: readonly string[];
};

export type Variables = {
  readonly values: NodeJS.ProcessEnv;
  readonly files: readonly EnvFile[];
  readonly problems: readonly Problem[];
};

/** Largest `.env` that is read, bytes. */
const maxBytes = 64 * 1024;

/**
 * Merges the environment with `.env` in the installation's home and `.env` in the folder that PARLEY_DATA_DIR names, in
 * this order of precedence. Never throws: an unreadable file is reported as a problem.
 */
export function withEnvFiles(environment: NodeJS.ProcessEnv, home: string): Variables {
  const beside = addFile({ values: environment, files: [], problems: [] }, join(home, '.env'));
  const dataDir = beside.values.PARLEY_DATA_DIR;
  if (!dataDir || resolve(home, dataDir) === resolve(home)) return beside;
  return addFile(beside, join(resolve(home, dataDir), '.env'));
}

function addFile(before: Variables, path: string): Variables {
  const read = readLimited(path);
  if (read === undefined) return before;
  if (typeof read !== 'string')
    return { ...before, problems: [...before.problems, { where: path, what: read.problem }] };
  const set = Object.entries(parseEnv(read)).filter(([, value]) => value !== undefined && value !== '');
  const misread = [...findCut(read, new Map(set)), ...findOverlong(set)];
  const isHidden = ([name]: readonly [string, unknown]) => (before.values[name] ?? '') !== '';
  const counting = set.filter((entry) => !isHidden(entry));
  const file = {
    path,
    names: counting.map(([name]) => name),
    hidden: set.filter(isHidden).map(([name]) => name),
  };
  return {
    ...before,
    values: { ...before.values, ...Object.fromEntries(counting) },
    files: [...before.files, file],
    problems: [...before.problems, ...misread.map((what) => ({ where: path, what }))],
  };
}

/** Finds values cut short by a `#`, which ends an unquoted value anywhere, so half a password would be used. */
function findCut(text: string, values: ReadonlyMap<string, string | undefined>): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const [, name = '', value] =
      /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*([^\s'"`#](?:[^#]*[^\s#])?)#/.exec(line) ?? [];
    if (value === undefined || values.get(name) !== value) return [];
    return [
      `${name} continues after a #, which starts a comment; quote the value, or put a space before the #`,
    ];
  });
}

/** Finds values with an unclosed quote, which include the lines up to the next quote. */
function findOverlong(values: readonly (readonly [string, string | undefined])[]): readonly string[] {
  return values.flatMap(([name, value]) =>
    value?.includes('\n') ? [`${name} continues on the next line; close its quotes`] : [],
  );
}

/** Returns the text, or what is wrong with the file, or undefined if there is no file. */
function readLimited(path: string): string | { readonly problem: string } | undefined {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const buffer = Buffer.alloc(maxBytes + 1);
    const length = readSync(file, buffer, 0, buffer.length, 0);
    if (length > maxBytes) return { problem: `is larger than ${maxBytes / 1024} KB; shorten it` };
    const text = buffer.toString('utf8', 0, length);
    // Windows' "Unicode" encoding uses two bytes per character, so no name would be recognized.
    if (text.includes('\0')) return { problem: "isn't UTF-8 text; save it as UTF-8" };
    return text.replace(/^\uFEFF/, '');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    return { problem: `can't be read (${String(error)}); let Parley's user read it, or remove it` };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
