#!/usr/bin/env node
// Runs Parley with the arguments, on a Node.js that can: this one, or the one the install brought. It runs the
// bundle if it is that of the sources (`npm start` makes it), and the sources otherwise.
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
const args = [...nodeFlags, main, ...process.argv.slice(2)];
const env = { ...nodeEnvironment(root), ...process.env };
if (typeof process.execve === 'function') {
  // Takes this process's place: one process less, and signals arrive where they belong.
  process.execve(node, [node, ...args], env);
}
const child = spawn(node, args, { stdio: 'inherit', env });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === null ? 1 : 128);
});
