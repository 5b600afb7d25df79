/**
 * Threads that the code under test starts find their modules stripped and compiled, as they do under bin/parley.mjs.
 * Without, each thread strips them anew with Node.js's own WebAssembly: a quarter of a second each, and V8 has ended the
 * process where several did so at once (a fatal check in the registry of compiled code).
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/parley'));
