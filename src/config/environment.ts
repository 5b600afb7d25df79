import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { type EnvFile, withEnvFiles } from './env-files.ts';
import type { Problem } from './problem.ts';

/** The variables that Parley reads from the environment; their names are fixed (spec 18). */
export const environmentNames = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_BASE_URL',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'TELEGRAM_BOT_TOKEN',
  'TELEGRAM_API_ROOT',
  'DISCORD_BOT_TOKEN',
  'DISCORD_API_BASE',
  'SIGNAL_API_URL',
  'SIGNAL_NUMBER',
  'SIGNAL_WEBHOOK_SECRET',
  'REDIS_URL',
  'DATABASE_URL',
  'PARLEY_DATA_DIR',
  'PARLEY_CONFIG',
  'PARLEY_HOST',
  'PARLEY_PORT',
  'PARLEY_TOKEN',
  'PARLEY_MODEL',
  'PARLEY_LOG_LEVEL',
  'PARLEY_DM_POLICY',
  'PARLEY_GROUP_POLICY',
  'PARLEY_OWNERS',
] as const;

/** A variable that Parley reads from the environment. */
export type EnvironmentName = (typeof environmentNames)[number];

/** The environment's values, without absent and empty ones. */
export type Environment = {
  readonly values: Readonly<Partial<Record<EnvironmentName, string>>>;
  /** Names that look meant for Parley but are unknown. */
  readonly unknown: readonly string[];
  /** Every other variable, because an account's secret may be in a variable of any name. */
  readonly others?: Readonly<Record<string, string>>;
  /** The `.env` files that were read. */
  readonly files?: readonly EnvFile[];
  readonly problems?: readonly Problem[];
};

/** Returns the value of a variable that a setting names; undefined if it isn't set. */
export function variableNamed(name: string, { values, others }: Environment): string | undefined {
  const known: Readonly<Record<string, string | undefined>> = values;
  return known[name] ?? others?.[name];
}

/** Reads the environment and the `.env` files; nothing else in Parley does. */
export function readSurroundings(home: string, source: NodeJS.ProcessEnv = process.env): Environment {
  const { values, files, problems } = withEnvFiles(withFullPaths(source), home);
  return { ...readEnvironment(values), files, problems };
}

/** Resolves paths from the shell against its working directory; those in a file are relative to the file. */
function withFullPaths(source: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PARLEY_DATA_DIR: dataDir, PARLEY_CONFIG: file } = source;
  return {
    ...source,
    ...(dataDir && { PARLEY_DATA_DIR: resolve(dataDir) }),
    ...(file && { PARLEY_CONFIG: resolve(file) }),
  };
}

/** Set by scripts/bundle.mjs in a package's bundle, whose folder is replaced by an update. */
declare const PARLEY_IS_PACKAGED: true | undefined;

/**
 * Returns the folder of this installation's `.env`, `parley.config.json` and `data`, wherever a command is run: the
 * clone; for an installed package, `parley` in XDG_DATA_HOME, by default ~/.local/share of `userHome`.
 */
export function homeFolder(userHome: string = homedir()): string {
  const { PARLEY_TEST_HOME: given, XDG_DATA_HOME: shared } = process.env;
  if (given) return given;
  if (typeof PARLEY_IS_PACKAGED === 'undefined') return resolve(import.meta.dirname, '../..');
  return join(shared || join(userHome, '.local/share'), 'parley');
}

/**
 * Sorts variables into known, unknown and other ones. An empty one counts as absent, because that is what `${NAME:-}`
 * in a compose file passes.
 */
export function readEnvironment(source: NodeJS.ProcessEnv): Environment {
  const values: Partial<Record<EnvironmentName, string>> = {};
  for (const name of environmentNames) {
    const value = source[name];
    if (value !== undefined && value !== '') values[name] = value;
  }
  const known: ReadonlySet<string> = new Set(environmentNames);
  const unknown = Object.keys(source).filter(
    (name) => name.startsWith('PARLEY_') && !known.has(name) && !developerNames.has(name),
  );
  const others: Record<string, string> = {};
  for (const [name, value] of Object.entries(source)) {
    if (value !== undefined && value !== '' && !known.has(name)) others[name] = value;
  }
  return { values, unknown, others };
}

/**
 * Creates a client of an SDK that reads variables on its own, with those that begin with `prefix` hidden from it: their
 * values are for one server, and the client may be another server's. Variables it reads later aren't hidden.
 */
export function hidingVariables<Made>(prefix: string, make: () => Made): Made {
  const hidden = Object.entries(process.env).filter(([name]) => name.startsWith(prefix));
  for (const [name] of hidden) delete process.env[name];
  try {
    return make();
  } finally {
    for (const [name, value] of hidden) process.env[name] = value;
  }
}

/** Returns the variables of this shell that locate the installation, with full paths, for a service without a shell. */
export function servicePlaces(): Readonly<Record<string, string>> {
  const { XDG_DATA_HOME: shared } = process.env;
  const { PARLEY_DATA_DIR: dataDir, PARLEY_CONFIG: file } = withFullPaths(process.env);
  return {
    ...(dataDir && { PARLEY_DATA_DIR: dataDir }),
    ...(file && { PARLEY_CONFIG: file }),
    ...(shared && { XDG_DATA_HOME: shared }),
  };
}

/** Returns the user who ran this command with `sudo`; undefined without it. */
export function sudoCaller(): { readonly uid: number; readonly gid: number } | undefined {
  const [uid, gid] = [Number(process.env.SUDO_UID), Number(process.env.SUDO_GID)];
  return process.getuid?.() === 0 && uid > 0 && gid > 0 ? { uid, gid } : undefined;
}

/** Returns the folder where programs keep this user's settings. */
export function userConfigFolder(): string {
  return process.env.XDG_CONFIG_HOME || join(homedir(), '.config');
}

/** Variables for tests. Parley itself only reads PARLEY_TEST_HOME, so that tests never find the developer's `.env`. */
const developerNames: ReadonlySet<string> = new Set([
  'PARLEY_LONG',
  'PARLEY_TEST_HOME',
  'PARLEY_TEST_DATABASE_URL',
  'PARLEY_TEST_REDIS',
]);

/**
 * Returns the variables that a child process may see: what programs need to run, and no credentials. An allow-list,
 * so that a secret added later is left out by default.
 */
export function childEnvironment(): Record<string, string> {
  const child: Record<string, string> = {};
  for (const name of ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']) {
    const value = process.env[name];
    if (value !== undefined) child[name] = value;
  }
  return child;
}

/** Says whether systemd keeps this process's output: it names the stream, which a shell inside a service inherits. */
export async function isJournaled(): Promise<boolean> {
  const { JOURNAL_STREAM: stream } = process.env;
  if (stream === undefined) return false;
  const found = await stat('/dev/stdout').catch(() => undefined);
  return found !== undefined && stream === `${found.dev}:${found.ino}`;
}

/** Says whether the output goes to a terminal, and so may have readable logs and colors. */
export function isInteractive(): boolean {
  return process.stdout.isTTY === true;
}
