// For `node --import`, which worker threads follow too: the threads of Parley are read from the bundle that the
// query of this module names. They know nothing of the process's environment.
import { registerHooks } from 'node:module';

const { searchParams } = new URL(import.meta.url);
const folder = searchParams.get('bundle');
const thread = /\/src\/(?:replies\/)?(markdown-thread|store-writer)\.ts$/;

registerHooks({
  resolve: (specifier, context, next) => {
    const [, name] = thread.exec(specifier) ?? [];
    if (name === undefined) return next(specifier, context);
    return { url: `${folder}/${name}.mjs`, format: 'module', shortCircuit: true };
  },
});
