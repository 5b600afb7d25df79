// Lets plugins in any folder import `parley/plugin` and `parley/testing` of this installation, for their tests:
// node --import=<this file> --test
import { registerHooks } from 'node:module';

const kits = new Map([
  ['parley/plugin', new URL('plugin.mjs', import.meta.url).href],
  ['parley/testing', new URL('testing.mjs', import.meta.url).href],
]);

registerHooks({
  resolve: (specifier, context, next) => {
    const url = kits.get(specifier);
    return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
  },
});
