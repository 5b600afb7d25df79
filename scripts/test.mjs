// Everything CI runs: format and lint, types, tests on a real Redis and a real PostgreSQL. Ends with
// one line, "N passed, N failed", and a non-zero exit code if anything failed.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createChildGroups } from './child-groups.mjs';
import { startPostgres } from './test-postgres.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const programs = join(root, 'node_modules', '.bin');

const groups = createChildGroups();

/** Runs a program from the dependencies with its output passed through; resolves with its exit code. */
function run(program, args, variables = {}) {
  return groups.run(join(programs, program), args, {
    cwd: root,
    env: { ...cleanEnvironment(), ...variables },
  });
}

/** The tests decide what Parley sees, so none of the developer's tokens or addresses may reach them. */
function cleanEnvironment() {
  const own = /^(ANTHROPIC|OPENAI|TELEGRAM|DISCORD|SIGNAL|PARLEY)_|^(REDIS|DATABASE)_URL$/;
  const kept = Object.entries(process.env).filter(([name]) => !own.test(name) || name === 'PARLEY_LONG');
  const PATH = `${programs}${delimiter}${process.env.PATH ?? ''}`;
  // The type checker is a Go program: collecting less often saves a quarter of its processor time.
  return { GOGC: '400', ...Object.fromEntries(kept), PATH };
}

async function check(name, program, args) {
  const began = performance.now();
  const code = await run(program, args);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`${code === 0 ? '✓' : '✗'} ${name} (${seconds} s)`);
  return code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/**
 * Returns the folder for the tests' files: in memory, since waiting for a disk took half of the time that gateways need.
 * Undefined where that is small or runs no programs, as in a container.
 */
function folderInMemory() {
  const memory = '/dev/shm';
  const probe = join(memory, `parley-probe-${process.pid}`);
  try {
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize < 4 * 1024 ** 3) return undefined;
    writeFileSync(probe, '#!/bin/sh\n', { mode: 0o700 });
    return spawnSync(probe).status === 0 ? memory : undefined;
  } catch {
    return undefined;
  } finally {
    rmSync(probe, { force: true });
  }
}

async function runTests(filters) {
  process.env.TMPDIR ??= folderInMemory() ?? tmpdir();
  const folder = mkdtempSync(join(tmpdir(), 'parley-test-'));
  const report = join(folder, 'report.json');
  let postgres;
  const stop = async () => {
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  // Ends the tests before their database, without which they would just fail one after the other.
  const onSignal = (_name, number) =>
    groups
      .endAll()
      .then(stop)
      .finally(() => process.exit(128 + number));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, onSignal);
  try {
    const bundles = makeBundles();
    postgres = await startPostgres();
    await bundles;
    console.log('✓ PostgreSQL for the tests is up');
    const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...filters];
    const code = await run('vitest', args, { PARLEY_TEST_DATABASE_URL: postgres.url });
    return readCounts(report, code);
  } catch (error) {
    console.error(`✗ ${error.message}`);
    return { passed: 0, failed: 1 };
  } finally {
    await stop();
  }
}

/** Makes the bundles. If one can't be built, its script says why, and the tests run the sources. */
function makeBundles() {
  return groups.run(process.execPath, [join(root, 'scripts/bundle.mjs'), '--tests'], { cwd: root });
}

/** Reads the counts. A file that couldn't be loaded and an error outside any test count as failures too. */
function readCounts(report, code) {
  let result;
  try {
    result = JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    console.error('✗ vitest left no report');
    return { passed: 0, failed: 1 };
  }
  const brokenFiles = result.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length;
  const failed = result.numFailedTests + brokenFiles;
  return { passed: result.numPassedTests, failed: failed === 0 && code !== 0 ? 1 : failed };
}

const filters = process.argv.slice(2);
// These run alongside the tests, which mostly wait.
const results = await Promise.all([
  check('format and lint', 'biome', ['check', '--error-on-warnings', '.']),
  // One checker, because each of several would reread what they share.
  check('types', 'tsc', ['--checkers', '1']),
  runTests(filters),
]);
const total = (name) => results.reduce((sum, result) => sum + result[name], 0);
console.log(`\n${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') === 0 ? 0 : 1;
