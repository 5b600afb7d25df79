// Makes the bundle that bin/parley.mjs runs: `src/` with its libraries in a few files, channels and plugins
// in separate files that are loaded when they are on. A start reads some 20 files instead of 1,500.
// Without arguments it builds for this clone, with --package for `npm pack`, with --tests for this clone and the
// end-to-end tests, and with --bench for this clone and the benchmarks.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { benchBundleFolder, bundleFolder, packedFolder, testBundleFolder } from '../bin/bundle.mjs';

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
const lean = { charset: 'ascii', comments: false };

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
      plugins: [modulesByAddress, requiresOnDemand],
      transform: {
        define: {
          PARLEY_COMMIT: JSON.stringify(commitOf(root)),
          ...(target === packedFolder(root) && { PARLEY_IS_PACKAGED: 'true' }),
        },
      },
      // Libraries look for optional packages such as zlib-sync; discord.js contains an eval that is never called.
      onLog: (level, log, pass) => !['UNRESOLVED_IMPORT', 'EVAL'].includes(log.code) && pass(level, log),
    });
    const names = { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' };
    await build.write({ dir: making, format: 'esm', ...names, ...lean });
    await build.close();
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
  await removeOld(dirname(target)).catch(() => undefined);
}

/** Turns each module that is loaded by URL, such as a thread, and what is served into files next to those that load them. */
const modulesByAddress = {
  name: 'modules-by-address',
  transform: {
    filter: { id: /\/(?:src|plugins)\/.*\.ts$/, code: "new URL('." },
    handler(code, id) {
      const served = code.replace("new URL('../client/", "new URL('./client/");
      return served.replace(/new URL\('(\.[^']*)\.ts', import\.meta\.url\)/g, (_text, path) => {
        const fileName = `${basename(path)}.mjs`;
        this.emitFile({ type: 'chunk', id: join(dirname(id), `${path}.ts`), fileName });
        return `new URL('./${fileName}', import.meta.url)`;
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

/** Returns the commit; empty if it is unknown, as in an image built without the history. */
function commitOf(root) {
  const { stdout, status } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: root,
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : '';
}

async function removeOld(folder) {
  const names = (await readdir(folder)).filter((name) => name !== 'package');
  const builds = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(folder, name))).mtimeMs })),
  );
  const old = builds.toSorted((a, b) => b.at - a.at).slice(keptBuilds);
  if (old.length === 0) return;
  const running = await commandLines();
  const unused = old.filter(({ name }) => !running.some((line) => line.includes(`/${name}/`)));
  await Promise.all(unused.map(({ name }) => rm(join(folder, name), { recursive: true, force: true })));
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
