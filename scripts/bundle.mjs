// Makes the bundle that bin/parley.mjs runs: `src/` with its libraries in a few files, channels and plugins
// in separate files that are loaded when they are on. A start reads some 70 files instead of 1,500, and bin/chunks.cjs
// runs them with the code that V8 compiled for an earlier start.
// Without arguments it builds for this clone, with --package for `npm pack`, with --tests for this clone and the
// end-to-end tests, and with --bench for this clone and the benchmarks.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { benchBundleFolder, bundleFolder, packedFolder, testBundleFolder } from '../bin/bundle.mjs';
import { nodeEnvironment } from '../bin/node-settings.mjs';

/** Entries by file name; modules that they load by URL are found on the way. */
const entries = {
  main: 'src/main.ts',
  testing: 'src/testing/plugin-harness.ts',
  'agent-kit': 'src/library/agent-kit.ts',
};
const benchEntries = { 'lane-process': 'bench/lanes/process.ts' };
const testModules = [
  'parley-under-test',
  'effect-plugin',
  'slow-tool',
  'faulty-tools',
  'web-tools',
  'page-tools',
];
const testEntries = {
  ...entries,
  ...Object.fromEntries(testModules.map((name) => [name, `test/e2e/${name}.ts`])),
  'serve-writers': 'test/support/serve-writers.ts',
};

/** How many builds a clone keeps, besides those in use: a running process loads more of its build as needed. */
const keptBuilds = 5;

/**
 * ASCII without comments: V8 keeps the source of running code, and uses two bytes for every character of a file if a
 * single one needs them. A gateway at rest takes 9 MB less. Lines are kept for stack traces; licences come with the
 * dependencies, which a package installs.
 */
const lean = { charset: 'ascii', comments: false, strict: true };

/** Makes the bundle unless it exists. Safe next to another build and when killed: its folder appears complete or never. */
export async function makeBundle({ root, target = bundleFolder(root), input = entries }) {
  if (existsSync(target)) return;
  const { rolldown } = await import('rolldown');
  const making = `${target}.${process.pid}.tmp`;
  try {
    const build = await rolldown({
      input,
      cwd: root,
      platform: 'node',
      // They contain native code, which their own packages locate.
      external: ['better-sqlite3', 'sharp'],
      plugins: [modulesByAddress, requiresOnDemand, importsFromOutside],
      transform: {
        define: {
          'import.meta.resolve': 'resolveModule',
          PARLEY_COMMIT: JSON.stringify(commitOf(root)),
          ...(target === packedFolder(root) && { PARLEY_IS_PACKAGED: 'true' }),
        },
      },
      // Libraries look for optional packages such as zlib-sync; discord.js contains an eval that is never called.
      onLog: (level, log, pass) => !['UNRESOLVED_IMPORT', 'EVAL'].includes(log.code) && pass(level, log),
    });
    const names = { entryFileNames: '[name].cjs', chunkFileNames: '[name]-[hash].cjs' };
    const { output } = await build.write({ dir: making, format: 'cjs', ...names, ...lean });
    await build.close();
    refuseToRunMain(output);
    await Promise.all(output.map((chunk) => finishChunk(making, chunk)));
    await cp(join(root, 'bin', 'chunks.cjs'), join(making, 'chunks.cjs'));
    for (const folder of ['server/page', 'client'])
      await cp(join(root, 'src', folder), join(making, basename(folder)), { recursive: true });
    // A second builder has produced the same files.
    await rename(making, target).catch((error) => {
      if (!existsSync(target)) throw error;
    });
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  // Anything that can't be removed now is removed after a later build.
  await removeOld(root).catch(() => undefined);
}

/** Turns each module that is loaded by URL, such as a thread, and what is served into files next to those that load them. */
const modulesByAddress = {
  name: 'modules-by-address',
  transform: {
    filter: { id: /\/(?:src|plugins)\/.*\.ts$/, code: "new URL('." },
    handler(code, id) {
      const served = code.replace("new URL('../client/", "new URL('./client/");
      return served.replace(/new URL\('(\.[^']*)\.ts', import\.meta\.url\)/g, (_text, path) => {
        const name = basename(path);
        this.emitFile({ type: 'chunk', id: join(dirname(id), `${path}.ts`), fileName: `${name}.cjs` });
        return `new URL('./${name}.mjs', import.meta.url)`;
      });
    },
  },
};

/** Exposes a module's own `require` to the bundler, so that what it loads later is in the bundle too. */
const requiresOnDemand = {
  name: 'requires-on-demand',
  transform: {
    filter: { id: /\/src\/.*\.ts$/, code: 'createRequire(import.meta.url)' },
    handler: (code) => code.replace('const require = createRequire(import.meta.url);', ''),
  },
};

/** What isn't in the bundle, such as a plugin from outside, is imported as from an ES module. */
const importsFromOutside = {
  name: 'imports-from-outside',
  transform: {
    filter: { id: /\/(?:src|test\/e2e)\/.*\.ts$/, code: 'import(' },
    handler: (code) => code.replace(/\bimport\((?!['"])|\bimport\((?='sharp'\))/g, 'importModule('),
  },
};

/** The names that bin/chunks.cjs gives to the text of a chunk. */
const given = 'exports, require, module, __filename, __dirname, importModule, resolveModule, keepChunkCode';

/** A thread whose chunk required the process's own would run that, and start threads without end. */
function refuseToRunMain(output) {
  const asking = output.find(({ imports }) => imports?.includes('main.cjs'));
  if (asking !== undefined) throw new Error(`${asking.fileName} would run main.cjs`);
}

/**
 * Turns the exports that never change into plain properties, those of constants at the end. As the functions that the
 * bundler makes of them, they cost a message up to a twelfth more processor time.
 */
function withPlainExports(code) {
  const namesOf = (kind) =>
    new Set(code.matchAll(new RegExp(`^(?:${kind}) ([\\w$]+)`, 'gm')).map(([, name]) => name));
  const functions = namesOf('(?:async )?function\\*?');
  const constants = namesOf('class|const');
  const later = [];
  const rest = code.replaceAll(
    /^Object\.defineProperty\(exports, "([\w$]+)", \{\s*enumerable: true,\s*get: function\(\) \{\s*return ([\w$]+);\s*\}\s*\}\);\n/gm,
    (getter, name, local) => {
      const plain = `exports.${name} = ${local};\n`;
      if (functions.has(local)) return plain;
      if (!constants.has(local)) return getter;
      later.push(plain);
      return '';
    },
  );
  return `${rest}\n${later.join('')}`;
}

/** Makes a chunk a function that begins with its digest and, if something starts or imports it, writes the module for that. */
async function finishChunk(folder, { type, code, fileName, isEntry, exports: names }) {
  if (type !== 'chunk') return;
  const text = `(function (${given}) {${withPlainExports(code)}\n})`;
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  await writeFile(join(folder, fileName), `/*${digest}*/${text}`);
  if (!isEntry) return;
  const name = basename(fileName, '.cjs');
  const opened = `openEntry('${name}', { importModule: (id) => import(id), resolveModule: (id) => import.meta.resolve(id) })`;
  const shown = names.length === 0 ? opened : `export const { ${names.join(', ')} } = ${opened}`;
  await writeFile(join(folder, `${name}.mjs`), `import { openEntry } from './chunks.cjs';\n${shown};\n`);
}

/** Returns the commit; empty if it is unknown, as in an image built without the history. */
function commitOf(root) {
  const { stdout, status } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: root,
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : '';
}

async function removeOld(root) {
  const folder = join(root, 'dist');
  const names = (await readdir(folder)).filter((name) => name !== 'package');
  const builds = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(folder, name))).mtimeMs })),
  );
  const old = builds.toSorted((a, b) => b.at - a.at).slice(keptBuilds);
  if (old.length === 0) return;
  const running = await commandLines();
  const unused = old.filter(({ name }) => !running.some((line) => line.includes(`/${name}/`)));
  const { NODE_COMPILE_CACHE: cache } = nodeEnvironment(root);
  // One folder for each version of Node.js.
  const versions = await readdir(cache).catch(() => []);
  const places = [folder, ...versions.map((name) => join(cache, name))];
  const paths = unused.flatMap(({ name }) => places.map((place) => join(place, name)));
  await Promise.all(paths.map((path) => rm(path, { recursive: true, force: true })));
}

/** Returns the command lines of all processes; those running a bundle name it. Throws when one can't be read. */
async function commandLines() {
  if (process.platform !== 'linux')
    return [execFileSync('ps', ['-A', '-ww', '-o', 'args'], { encoding: 'utf8', maxBuffer: 2 ** 26 })];
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const hasEnded = ({ code }) => ['ENOENT', 'ESRCH'].includes(code);
  const read = (id) => readFile(`/proc/${id}/cmdline`, 'utf8');
  return Promise.all(
    ids.map((id) => read(id).catch((error) => (hasEnded(error) ? '' : Promise.reject(error)))),
  );
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  try {
    await makeFor(root, process.argv[2]);
  } catch (error) {
    console.error(
      `The bundle couldn't be built, so Parley runs from source and starts more slowly: ${error.message}`,
    );
    process.exitCode = 1;
  }
}

async function makeFor(root, purpose) {
  await mkdir(join(root, 'dist'), { recursive: true });
  if (purpose === '--tests') await makeBundle({ root, target: testBundleFolder(root), input: testEntries });
  if (purpose === '--bench') await makeBundle({ root, target: benchBundleFolder(root), input: benchEntries });
  if (purpose !== '--package') return makeBundle({ root });
  // A package is rebuilt each time, because it names its commit.
  await rm(packedFolder(root), { recursive: true, force: true });
  await makeBundle({ root, target: packedFolder(root) });
  const { writeTypes } = await import('./package-types.mjs');
  await writeTypes(root, join(packedFolder(root), 'types'));
}
