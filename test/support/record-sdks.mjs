// For `node --import`: records which model SDKs a process loads, in the file that this module's query
// names. The text of a bundle's chunk, which bin/chunks.cjs reads and runs, shows which packages it contains.
import fs, { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const file = new URL(import.meta.url).searchParams.get('file');
const { readFileSync } = fs;

function record(text) {
  for (const name of ['openai', '@anthropic-ai/sdk'])
    if (text.includes(`node_modules/${name}/`)) appendFileSync(file, `${name}\n`);
}

fs.readFileSync = (path, ...options) => {
  const content = readFileSync(path, ...options);
  if (String(path).endsWith('.cjs') && typeof content === 'string') record(content);
  return content;
};

// Without a bundle, modules are loaded one by one.
registerHooks({
  load: (url, context, next) => {
    record(url);
    return next(url, context);
  },
});
