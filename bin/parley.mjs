#!/usr/bin/env node
// Runs Parley with the arguments, on a Node.js that can: this one, or the one the install brought. It runs the
// bundle if it is that of the sources (`npm start` makes it), and the sources otherwise.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleFolder } from './bundle.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const bundle = join(bundleFolder(root), 'main.mjs');
const main = existsSync(bundle) ? bundle : join(root, 'src', 'main.ts');
const compiled = join(root, 'node_modules', '.cache', 'parley');
const isNewEnough = Number(process.versions.node.split('.')[0]) >= 24;
// In a clone; in a package, beside it or below it.
const bundled = ['node_modules/.bin/node', '../.bin/node']
  .map((path) => join(root, path))
  .find((path) => existsSync(path));

if (!isNewEnough && bundled === undefined) {
  const isClone = existsSync(join(root, 'src'));
  const todo = isClone ? 'Run "npm ci" in its folder' : 'Install Node.js 24';
  console.error(`Parley needs Node.js 24 or newer; this is ${process.version}. ${todo} first.`);
  process.exit(1);
}

const node = isNewEnough ? process.execPath : bundled;
// Left alone, V8 lets old objects grow to four times what lives: 130 MB more under load at the same speed.
// Below 100 percent it would collect so often that a message takes a quarter more processor time. With less
// room for young objects, what 200 conversations have at hand grows old in between: with 2 MB a message of a
// burst takes a fifth more. `--expose-gc` is for src/cli/gc-when-idle.ts.
const flags = ['--max-semi-space-size=16', '--heap-growing-percent=100', '--expose-gc'];
const args = [...flags, main, ...process.argv.slice(2)];
const env = {
  // Set before the first module is read, so that the code that strips types is not even loaded: 25 MB.
  NODE_COMPILE_CACHE: compiled,
  // Threads that share glibc's heaps leave less unused in each, and what is free goes back: 13 MB.
  MALLOC_ARENA_MAX: '2',
  MALLOC_TRIM_THRESHOLD_: '131072',
  ...process.env,
};
if (typeof process.execve === 'function') {
  // Takes this process's place: one process less, and signals arrive where they belong.
  process.execve(node, [node, ...args], env);
}
const child = spawn(node, args, { stdio: 'inherit', env });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 1 : 128);
});
