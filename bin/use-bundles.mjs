// For `node --import`, which worker threads follow too: see library-bundles.mjs.
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { madeBundles } from './library-bundles.mjs';

const urls = new Map(madeBundles().map(({ specifier, file }) => [specifier, pathToFileURL(file).href]));

if (urls.size > 0) {
  registerHooks({
    resolve: (specifier, context, next) => {
      const url = urls.get(specifier);
      return url === undefined ? next(specifier, context) : { url, format: 'module', shortCircuit: true };
    },
  });
}
