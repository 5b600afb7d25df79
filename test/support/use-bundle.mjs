// For `node --import`, which also applies to worker threads: Parley's threads are read from the bundle that this
// module's query names. They can't see the environment of the process.
import { registerHooks } from 'node:module';

const { searchParams } = new URL(import.meta.url);
const folder = searchParams.get('bundle');
const thread = /\/(?:src|src\/replies|test\/support)\/(markdown-thread|store-writer|serve-writers)\.ts$/;

registerHooks({
  resolve: (specifier, context, next) => {
    const [, name] = thread.exec(specifier) ?? [];
    if (name === undefined) return next(specifier, context);
    return { url: `${folder}/${name}.mjs`, format: 'module', shortCircuit: true };
  },
});
