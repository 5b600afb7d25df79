/**
 * Lets threads of the code under test find their modules stripped and compiled, as they do under bin/parley.mjs.
 * Otherwise each thread strips them again with Node.js's own WebAssembly, which takes a quarter of a second, and V8 has
 * crashed the process when several did so at the same time (a fatal check in the registry of compiled code).
 */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

enableCompileCache(join(import.meta.dirname, '../../node_modules/.cache/parley'));
