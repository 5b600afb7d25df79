// Prepares a fresh machine, and finishes in milliseconds if everything is there: dependencies, a Node.js that
// can run TypeScript, redis-server; with --test also PostgreSQL, Chromium, strace, and spin with a C compiler.
// Plain JavaScript without dependencies, for any Node.js from 18 on.
// package.json calls it before each command instead of using "pre" scripts, which npm skips where
// ignore-scripts is set, as is common. The `env node` after it finds the Node.js that this script may have installed.
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { delimiter, join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleFolder } from '../bin/bundle.mjs';
import { bundledPlatforms, isNewEnough, refuseOldNode } from '../bin/node-version.mjs';

/** Required programs: how to detect each, and its package by package manager. */
const requirements = {
  redis: {
    isThere: () => findOnPath('redis-server') !== undefined,
    packages: { 'apt-get': ['redis-server'], dnf: ['redis'], apk: ['redis'], brew: ['redis'] },
  },
  postgresql: {
    isThere: () => findPostgres('initdb') !== undefined,
    packages: {
      'apt-get': ['postgresql'],
      dnf: ['postgresql-server'],
      apk: ['postgresql'],
      brew: ['postgresql@17'],
    },
  },
  chromium: {
    isThere: () => browserNames.some((name) => findOnPath(name) !== undefined),
    packages: { 'apt-get': ['chromium'], dnf: ['chromium'], apk: ['chromium'], brew: ['--cask', 'chromium'] },
  },
  strace: {
    isThere: () => process.platform !== 'linux' || findOnPath('strace') !== undefined,
    packages: { 'apt-get': ['strace'], dnf: ['strace'], apk: ['strace'], brew: [] },
  },
  spin: {
    isThere: () => findOnPath('spin') !== undefined,
    packages: { 'apt-get': ['spin'], dnf: ['spin'], apk: ['spin'], brew: ['spin'] },
  },
  gcc: {
    // Without the C library's headers it can't compile anything; outside Linux it comes with its own.
    isThere: () =>
      findOnPath('gcc') !== undefined && (process.platform !== 'linux' || existsSync('/usr/include/stdio.h')),
    packages: { 'apt-get': ['gcc', 'libc6-dev'], dnf: ['gcc'], apk: ['gcc', 'musl-dev'], brew: ['gcc'] },
  },
};

const browserNames = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Prepares the machine. Returns the problem, with what to do about it; undefined when everything is there. */
export function bootstrap({ root, isForTests, environment = process.env }) {
  return (
    refuseOldNode() ??
    installDependencies(root, isForTests) ??
    (isForTests ? undefined : bundle(root)) ??
    installPrograms(neededPrograms(isForTests, { root, environment }))
  );
}

function neededPrograms(isForTests, where) {
  const needed = isForTests || !hasRedisUrl(where) ? ['redis'] : [];
  return isForTests ? [...needed, 'postgresql', 'chromium', 'strace', 'spin', 'gcc'] : needed;
}

/** Looks in the environment and in each `.env` that Parley will read (src/config/env-files.ts). */
function hasRedisUrl({ root, environment }) {
  const sets = (path) =>
    existsSync(path) && /^\s*(?:export\s+)?REDIS_URL\s*=\s*\S/m.test(readFileSync(path, 'utf8'));
  const { REDIS_URL: url, PARLEY_DATA_DIR: dataDir } = environment;
  return Boolean(url) || [root, ...(dataDir ? [dataDir] : [])].some((folder) => sets(join(folder, '.env')));
}

function installDependencies(root, isForTests) {
  if (areDependenciesCurrent(root, isForTests) && hasNode(root)) return undefined;
  say('Installing the dependencies (once; about a minute)');
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  // `npm ci` starts with an empty folder, so a clone that has run the tests keeps their dependencies.
  const isLean = !isForTests && !hasTestDependencies(root);
  if (isLean) args.push('--omit=dev');
  const npm = process.env.npm_execpath;
  const isScript = npm !== undefined && /\.[cm]?js$/.test(npm);
  const result = isScript
    ? spawnSync(process.execPath, [npm, ...args], { cwd: root, stdio: ['ignore', 2, 2] })
    : spawnSync('npm', args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (result.status === 0 && !isForTests) dropUnread(root);
  if (result.status === 0 && isLean) dropTypes(join(root, 'node_modules'));
  if (result.status === 0) return undefined;
  return `"npm ci" failed in ${root}. Fix the problem shown above, then run this again.`;
}

/** False when this Node.js is too old and the bundled one was dropped while a newer one ran here. */
function hasNode(root) {
  return isNewEnough() || existsSync(join(root, 'node_modules', '.bin', 'node'));
}

/** Sources, headers and binaries for other systems, which no start reads: 100 MB of what npm installs. */
const unreadParts = [
  ...bundledPlatforms.flatMap((platform) => [`node-${platform}/include`, `node-${platform}/share`]),
  'better-sqlite3/deps',
  'openai/src',
  '@anthropic-ai/sdk/src',
];

/** Keeps only what Parley reads. If the machine's Node.js is new enough, the one npm installed goes too, another 120 MB. */
function dropUnread(root) {
  const modules = join(root, 'node_modules');
  const drop = (...path) => rmSync(join(modules, ...path), { recursive: true, force: true });
  for (const part of unreadParts) drop(part);
  const builds = join(modules, 'better-sqlite3', 'prebuilds');
  for (const name of existsSync(builds) ? readdirSync(builds) : [])
    if (!name.startsWith(process.platform) || !name.includes(process.arch))
      drop('better-sqlite3', 'prebuilds', name);
  if (!isNewEnough() || isBundledNode(root)) return;
  for (const platform of bundledPlatforms) drop(`node-${platform}`);
  drop('.bin', 'node');
}

/**
 * True when this Node.js came with the install. npm puts it first on the path of `npm start`; what the machine itself
 * has, and will start Parley with once this one is gone, may be too old.
 */
function isBundledNode(root) {
  return process.execPath.startsWith(join(realpathSync(root), 'node_modules', sep));
}

/** Drops declarations and source maps, a third of the rest: only the compiler reads them, and only tests need it. */
function dropTypes(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) dropTypes(path);
    else if (/\.d\.[cm]?ts$|\.map$/.test(entry.name)) rmSync(path);
  }
}

/** Builds the bundle, which only makes the start faster: without it the sources are run. */
function bundle(root) {
  if (!existsSync(join(root, 'src')) || existsSync(bundleFolder(root))) return undefined;
  const brought = join(root, 'node_modules', '.bin', 'node');
  const node = existsSync(brought) ? brought : process.execPath;
  spawnSync(node, [join(root, 'scripts', 'bundle.mjs')], { stdio: ['ignore', 2, 2] });
  return undefined;
}

const installedIn = (root) => join(root, 'node_modules', '.package-lock.json');

/** True when node_modules contains what the lock file names, including, for the tests, what only they need. */
export function areDependenciesCurrent(root, isForTests = false) {
  const installed = installedIn(root);
  const wanted = join(root, 'package-lock.json');
  if (!existsSync(installed)) return false;
  const isNewer = statSync(installed).mtimeMs >= statSync(wanted).mtimeMs;
  if (isNewer && !isForTests) return true;
  if (!isSameTree(readPackages(installed), readPackages(wanted), isForTests)) return false;
  // The lock file was merely checked out again. Remember that, so that the next start is quick.
  const now = new Date();
  if (!isNewer) utimesSync(installed, now, now);
  return true;
}

function hasTestDependencies(root) {
  if (!existsSync(installedIn(root))) return false;
  return Object.values(readPackages(installedIn(root))).some(({ dev }) => dev === true);
}

function readPackages(path) {
  return JSON.parse(readFileSync(path, 'utf8')).packages ?? {};
}

function isSameTree(installed, wanted, isForTests) {
  const names = Object.keys(wanted).filter((name) => name !== '');
  const isAsWanted = (name) => {
    const { version, optional, dev } = wanted[name];
    if (installed[name] === undefined) return optional === true || (dev === true && !isForTests);
    return installed[name].version === version;
  };
  return names.every(isAsWanted) && Object.keys(installed).every((name) => wanted[name] !== undefined);
}

function installPrograms(names) {
  const missing = names.filter((name) => !requirements[name].isThere());
  if (missing.length === 0) return undefined;
  const manager = ['apt-get', 'dnf', 'apk', 'brew'].find((name) => findOnPath(name) !== undefined);
  if (manager === undefined) return `Missing: ${missing.join(', ')}. Install them and run this again.`;
  const packages = missing.flatMap((name) => requirements[name].packages[manager]);
  const commands = installCommands(manager, packages);
  const isRoot = process.getuid?.() === 0;
  if (!isRoot && manager !== 'brew') {
    const line = commands.map((command) => `sudo ${command.join(' ')}`).join(' && ');
    return `Missing: ${missing.join(', ')}. Type this line, then run this again:\n\n  ${line}\n${redisHint(missing)}`;
  }
  say(`Installing ${missing.join(', ')}`);
  for (const [program, ...args] of commands) {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const result = spawnSync(program, args, { env, encoding: 'utf8' });
    if (result.status !== 0) {
      const output = `${result.stdout ?? ''}${result.stderr ?? ''}`.slice(-2000);
      return `"${program} ${args.join(' ')}" failed:\n${output}${redisHint(missing)}`;
    }
  }
  const absent = missing.filter((name) => !requirements[name].isThere());
  return absent.length === 0 ? undefined : `Installed, but still not found: ${absent.join(', ')}.`;
}

function installCommands(manager, packages) {
  switch (manager) {
    case 'apt-get':
      return [
        ['apt-get', 'update', '-qq'],
        ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...packages],
      ];
    case 'dnf':
      return [['dnf', 'install', '-y', '-q', ...packages]];
    case 'apk':
      return [['apk', 'add', '--no-progress', ...packages]];
    default:
      return [['brew', 'install', ...packages]];
  }
}

function redisHint(missing) {
  return missing.includes('redis') ? '\nOr set REDIS_URL to a Redis you run yourself (6.2 or newer).' : '';
}

export function findOnPath(name, path = process.env.PATH ?? '') {
  return path
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isExecutable);
}

/** Finds one of PostgreSQL's programs; Debian keeps them off the path, in one folder per version. */
export function findPostgres(name) {
  const base = '/usr/lib/postgresql';
  const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(base, version, 'bin', name)).find(isExecutable) ?? findOnPath(name);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function say(text) {
  console.error(`${text} …`);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  const problem = bootstrap({ root, isForTests: process.argv.includes('--test') });
  if (problem !== undefined) {
    console.error(problem);
    process.exitCode = 1;
  }
}
