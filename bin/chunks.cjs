// Runs the chunks of a bundle, each with the code that V8 compiled in an earlier process. Node.js's own cache
// (NODE_COMPILE_CACHE) holds a module as it is before it runs, so without any function that is called in it: compiling
// those again took a quarter of the processor time of a start. scripts/bundle.mjs copies this file into each bundle.
'use strict';
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { getCompileCacheDir } = require('node:module');
const { basename, join } = require('node:path');
const { threadId } = require('node:worker_threads');
const { Script } = require('node:vm');

/** What a chunk's text begins with: a comment with the digest of the rest. */
const digestLength = '/*0123456789abcdef*/'.length;

const folder = __dirname;
/** The chunks that ran, by file name. */
const modules = new Map();
const opened = new Set();
/** Those of them whose code is still to be kept. */
const uncached = new Map();
/** Where the code is kept that processes of this kind need; undefined while nothing was opened, or if code isn't kept. */
let cacheFolder;

/**
 * Runs an entry's chunk and returns its exports: again for each address under which its module is imported, as an ES
 * module. `importModule` and `resolveModule` are those of ES modules.
 */
exports.openEntry = (name, host) => {
  cacheFolder ??= folderFor(name);
  const chunk = `${name}.cjs`;
  if (opened.has(chunk)) modules.delete(chunk);
  opened.add(chunk);
  return run(chunk, host);
};

/** Each command has its own: the first to run would otherwise decide which functions of a shared chunk are kept. */
function folderFor(entry) {
  const kept = getCompileCacheDir();
  if (kept === undefined) return undefined;
  const [, , command = ''] = process.argv;
  const kind = entry === 'main' && /^[a-z]{1,20}$/.test(command) ? `${entry}-${command}` : entry;
  // A misspelt command isn't worth a folder, and a gateway may be killed: it keeps its code earlier.
  process.once('exit', (code) => code === 0 && keepCode());
  return join(kept, basename(folder), kind);
}

function run(name, host) {
  const known = modules.get(name);
  if (known !== undefined) return known.exports;
  const module = { exports: {} };
  modules.set(name, module);
  try {
    const require = (id) => (id.startsWith('./') ? run(id.slice(2), host) : requireModule(id));
    const args = [module.exports, Object.assign(require, requireModule), module, join(folder, name), folder];
    compile(name).apply(module.exports, [...args, host.importModule, host.resolveModule, keepCode]);
    return module.exports;
  } catch (error) {
    // It may run later, once what it lacks is there.
    modules.delete(name);
    throw error;
  }
}

const requireModule = require;

function compile(name) {
  const filename = join(folder, name);
  const source = readFileSync(filename, 'latin1');
  const digest = source.slice(0, digestLength);
  const cachedData = keptCode(name, digest);
  const script = new Script(source, { filename, cachedData });
  if (cachedData === undefined || script.cachedDataRejected) uncached.set(name, { script, digest });
  return script.runInThisContext();
}

function keptCode(name, digest) {
  if (cacheFolder === undefined) return undefined;
  try {
    const kept = readFileSync(join(cacheFolder, name));
    return kept.latin1Slice(0, digestLength) === digest ? kept.subarray(digestLength) : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps the code compiled so far of the chunks that had none. Without a place to keep it, the next start compiles again. */
function keepCode() {
  if (cacheFolder === undefined || uncached.size === 0) return;
  try {
    mkdirSync(cacheFolder, { recursive: true });
    for (const [name, { script, digest }] of uncached) {
      const path = join(cacheFolder, name);
      // Another process never sees half of it.
      const written = `${path}.${process.pid}-${threadId}`;
      writeFileSync(written, Buffer.concat([Buffer.from(digest, 'latin1'), script.createCachedData()]));
      renameSync(written, path);
    }
  } catch {
    // Such as a read-only installation.
  }
}
