// For `node --import`: writes down which SDKs of models a process loads, into the file that the query of this module
// names. A chunk of the bundle tells by its text which packages it holds.
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const file = new URL(import.meta.url).searchParams.get('file');

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context);
    const text = `${url}\n${loaded.source ?? ''}`;
    for (const name of ['openai', '@anthropic-ai/sdk'])
      if (text.includes(`node_modules/${name}/`)) appendFileSync(file, `${name}\n`);
    return loaded;
  },
});
