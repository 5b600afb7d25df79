#!/usr/bin/env node
// Runs Parley with the given arguments, on a suitable Node.js: this one, or the one that came with the install. It runs
// the bundle if there is one for the current sources (`npm start` makes it), and otherwise the sources themselves.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import module from 'node:module';
import net from 'node:net';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundleFolder } from './bundle.mjs';
import { connectAttemptMs, nodeEnvironment, nodeFlags } from './node-settings.mjs';
import { isNewEnough, oldestNode, refuseOldNode } from './node-version.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const bundle = join(bundleFolder(root), 'main.mjs');
const main = existsSync(bundle) ? bundle : join(root, 'src', 'main.ts');
// The path in a clone or below a package, then the path next to a package.
const bundled = ['node_modules/.bin/node', '../.bin/node']
  .map((path) => join(root, path))
  .find((path) => existsSync(path));

const isClone = existsSync(join(root, 'src'));
const problem = findProblem();
if (problem !== undefined) {
  console.error(problem);
  process.exit(1);
}

/** Commands that may go on for hours: they need Node.js's settings, and a command line that names the bundle in use. */
const lasting = ['start', 'chat', 'acp', 'logs', 'onboard', 'channels'];

if (isNewEnough() && !lasting.includes(process.argv[2])) await runHere();
else runAnew();

/** Runs the command in this process: starting Node.js again would cost as much time as a third of a command. */
async function runHere() {
  const env = nodeEnvironment(root);
  Object.assign(process.env, { ...env, ...process.env });
  // Empty turns it off, as it does for Node.js itself.
  if (process.env.NODE_COMPILE_CACHE !== '') module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  net.setDefaultAutoSelectFamilyAttemptTimeout(connectAttemptMs);
  await import(pathToFileURL(main).href);
}

/** Runs the command with the settings of `node-settings.mjs`, and on a suitable Node.js. */
function runAnew() {
  const node = isNewEnough() ? process.execPath : bundled;
  const args = [...nodeFlags, main, ...process.argv.slice(2)];
  const env = { ...nodeEnvironment(root), ...process.env };
  if (typeof process.execve === 'function') {
    // Replaces this process: one process fewer, and signals arrive where they belong.
    process.execve(node, [node, ...args], env);
  }
  const child = spawn(node, args, { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR2'])
    process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === null ? 1 : 128);
  });
}

/** Returns what has to be done before any command can run. */
function findProblem() {
  const isReady = isNewEnough() || bundled !== undefined;
  if (isClone && (!isReady || !existsSync(join(root, 'node_modules', 'commander'))))
    return (
      refuseOldNode() ??
      `Parley isn't installed yet: its dependencies are missing. Install them, then run this again:\n\n  node ${join(root, 'scripts', 'bootstrap.mjs')}\n`
    );
  if (isReady) return undefined;
  return (
    refuseOldNode() ??
    `Parley needs Node.js ${oldestNode} or newer; this is ${process.versions.node}. Install it again with its optional dependencies, which include one.`
  );
}
