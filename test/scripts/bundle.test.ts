import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { bundleFolder } from '../../bin/bundle.mjs';
import { makeBundle } from '../../scripts/bundle.mjs';

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'parley-bundle-')));
  for (const name of ['bin', 'scripts/bundle.mjs', 'package.json'])
    cpSync(name, join(root, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(root, 'node_modules'));
  for (const folder of ['store/sqlite', 'replies', 'server/page', 'client', 'testing', 'library'])
    mkdirSync(join(root, 'src', folder), { recursive: true });
  write('src/server/page/index.html', '<title>Parley</title>');
  write('src/replies/markdown-thread.ts', 'export {};');
  write(
    'src/store/sqlite/writer-thread.ts',
    "import { parentPort } from 'node:worker_threads';\nparentPort?.postMessage('wrote');",
  );
  write('src/store/sqlite/open.ts', opener);
  write('src/later.ts', 'export const two = 2;');
  write('src/testing/plugin-harness.ts', 'export {};');
  write('src/library/agent-kit.ts', "export * as later from '../later.ts';");
  write('src/main.ts', program);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
});

const opener = `
import { Worker } from 'node:worker_threads';
export const openThread = () => new Worker(new URL('./writer-thread.ts', import.meta.url));`;

/** What can go wrong in a bundle: a thread, a library that is required or found, imports from in- and outside, files. */
const program = `
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { openThread } from './store/sqlite/open.ts';
const require = createRequire(import.meta.url);
const thread = openThread();
const page = readFileSync(new URL(import.meta.filename.endsWith('.ts') ? 'server/page/index.html' : 'page/index.html', import.meta.url), 'utf8');
const library = import.meta.resolve('preact').split('/').at(-1);
thread.once('message', async (told) => {
  const { two } = await import('./later.ts');
  const outside = await import(new URL('data:text/javascript,export const name = "outside"').href);
  console.log(JSON.stringify([import.meta.filename, told, two, typeof require('fastify'), page, library, outside.name]));
});`;

function write(path: string, text: string) {
  writeFileSync(join(root, path), text);
}

/** Runs the script; other builds are made in this process, because each one of a script loads the bundler. */
const bundle = (...args: string[]) =>
  spawnSync(process.execPath, ['scripts/bundle.mjs', ...args], { cwd: root, encoding: 'utf8' });

/** Returns what `parley` prints there, and which file it ran from. */
function run() {
  const { stdout, stderr } = spawnSync(process.execPath, ['bin/parley.mjs'], { cwd: root, encoding: 'utf8' });
  if (stdout === '') throw new Error(stderr);
  const [file, ...said] = JSON.parse(stdout) as readonly [string, ...unknown[]];
  return { file, said };
}

const builds = () => readdirSync(join(root, 'dist'));

it('does what the sources do, including threads, required libraries and other files', () => {
  const before = run();
  expect(before.file).toBe(join(root, 'src/main.ts'));
  expect(bundle()).toMatchObject({ status: 0, stderr: '' });
  const after = run();
  expect(after.file).toContain(bundleFolder(root));
  expect(after.said).toEqual(before.said);
  expect(after.said).toEqual(['wrote', 2, 'function', '<title>Parley</title>', 'preact.mjs', 'outside']);
});

/** Where Node.js keeps compiled code, and below it the bundle. */
function keptCode(): readonly string[] {
  const folder = join(root, 'cache');
  return existsSync(folder) ? readdirSync(folder, { recursive: true }).map(String) : [];
}

it('runs with the code that an earlier process compiled, which goes with its bundle', async () => {
  await makeBundle({ root });
  vi.stubEnv('NODE_COMPILE_CACHE', join(root, 'cache'));
  const { said } = run();
  const [chunk = ''] = keptCode().filter((path) => path.endsWith('/main/main.cjs'));
  const kept = statSync(join(root, 'cache', chunk)).ino;
  expect(run().said).toEqual(said);
  expect(statSync(join(root, 'cache', chunk)).ino).toBe(kept);
  expect(keptCode().filter((path) => path.endsWith('/writer-thread/writer-thread.cjs'))).toHaveLength(1);
});

it('compiles again whatever it has no usable code of', async () => {
  await makeBundle({ root });
  vi.stubEnv('NODE_COMPILE_CACHE', join(root, 'cache'));
  const { said } = run();
  const [chunk = ''] = keptCode().filter((path) => path.endsWith('/main/main.cjs'));
  const path = join(root, 'cache', chunk);
  const kept = readFileSync(path);
  for (const broken of [
    kept.subarray(0, 15),
    kept.subarray(0, kept.length - 100),
    Buffer.concat([Buffer.from('/*0123456789abcdef*/'), kept.subarray(20)]),
  ]) {
    writeFileSync(path, broken);
    expect(run().said).toEqual(said);
    const anew = readFileSync(path);
    expect(anew).not.toEqual(broken);
    expect(anew.subarray(0, 20)).toEqual(kept.subarray(0, 20));
  }
});

it('ignores a bundle once a source has changed, but keeps it for processes that run it', async () => {
  await makeBundle({ root });
  const first = builds();
  write('src/later.ts', 'export const two = 22;');
  expect(run().file).toBe(join(root, 'src/main.ts'));
  await makeBundle({ root });
  expect(run()).toMatchObject({
    said: expect.arrayContaining(['wrote', 22, 'function', '<title>Parley</title>']),
  });
  expect(builds()).toHaveLength(2);
  expect(builds()).toEqual(expect.arrayContaining(first));
});

it('does not rebuild a bundle when nothing has changed', async () => {
  await makeBundle({ root });
  const main = join(bundleFolder(root), 'main.mjs');
  utimesSync(main, 1, 1);
  await makeBundle({ root });
  expect(statSync(main).mtimeMs).toBe(1000);
});

it('leaves one bundle after two concurrent builds and none after a killed build', async () => {
  const killed = spawn(process.execPath, ['scripts/bundle.mjs'], { cwd: root, stdio: 'ignore' });
  const gone = once(killed, 'exit');
  await expect.poll(() => existsSync(join(root, 'dist')) && builds().length).toBeGreaterThan(0);
  killed.kill('SIGKILL');
  await gone;
  const both = [1, 2].map(() =>
    spawn(process.execPath, ['scripts/bundle.mjs'], { cwd: root, stdio: 'ignore' }),
  );
  expect(await Promise.all(both.map(async (child) => (await once(child, 'exit'))[0]))).toEqual([0, 0]);
  expect(run()).toMatchObject({ file: expect.stringContaining(bundleFolder(root)) });
  expect(builds().filter((name) => name === basename(bundleFolder(root)))).toHaveLength(1);
});

/** Makes one build after the other, each from other sources. In this process: another would load the bundler each time. */
async function buildAnew(times: number) {
  for (let time = 0; time < times; time++) {
    write('src/later.ts', `export const two = ${'2'.repeat(time + 2)};`);
    await makeBundle({ root });
  }
}

it('keeps only the newest builds', async () => {
  await buildAnew(6);
  expect(builds()).toHaveLength(5);
  expect(run().file).toContain(bundleFolder(root));
});

it('keeps a build that a process runs from, until that process ends, even by kill -9', async () => {
  write(
    'src/main.ts',
    `console.log('runs');
process.stdin.on('data', () =>
  import('./later.ts').then(({ two }) => console.log(two), ({ code }) => console.log(code)));`,
  );
  await makeBundle({ root });
  const used = basename(bundleFolder(root));
  const running = spawn(process.execPath, ['bin/parley.mjs', 'start'], { cwd: root });
  const ended = once(running, 'exit');
  try {
    await once(running.stdout, 'data');
    await buildAnew(6);
    running.stdin.write('load');
    expect(String((await once(running.stdout, 'data'))[0])).toBe('2\n');
  } finally {
    running.kill('SIGKILL');
    await ended;
  }
  write('src/later.ts', 'export const two = 0;');
  await makeBundle({ root });
  expect(builds()).toHaveLength(5);
  expect(builds()).not.toContain(used);
});
