// For `node --import`: records which model SDKs a process loads, in the file that this module's query
// names. The text of a bundle chunk shows which packages it contains.
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
