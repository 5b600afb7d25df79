import { flushCompileCache } from 'node:module';

/** Given to each chunk of the bundle by bin/chunks.cjs. */
declare const keepChunkCode: () => void;

/** Stores the code compiled so far for the next start: that of the bundle, and of modules that Node.js loads. */
export function keepCompiledCode(): void {
  flushCompileCache();
  if (typeof keepChunkCode !== 'undefined') keepChunkCode();
}
