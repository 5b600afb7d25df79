#!/usr/bin/env node
// Runs Parley with the given arguments, on a suitable Node.js: this one, or the one that came with the install. It runs
// the bundle if there is one for the current sources (`npm start` makes it), and otherwise the sources themselves.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleFolder } from './bundle.mjs';
import { nodeEnvironment, nodeFlags } from './node-settings.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const bundle = join(bundleFolder(root), 'main.mjs');
const main = existsSync(bundle) ? bundle : join(root, 'src', 'main.ts');
const isNewEnough = Number(process.versions.node.split('.')[0]) >= 24;
// The path in a clone or below a package, then the path next to a package.
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
const args = [...nodeFlags, main, ...process.argv.slice(2)];
const env = { ...nodeEnvironment(root), ...process.env };
if (typeof process.execve === 'function') {
  // Replaces this process: one process fewer, and signals arrive where they belong.
  process.execve(node, [node, ...args], env);
}
const child = spawn(node, args, { stdio: 'inherit', env });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 1 : 128);
});
