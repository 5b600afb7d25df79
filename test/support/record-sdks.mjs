// For `node --import`: records which model SDKs a process loads, in the file that this module's query
// names. The text of a bundle's chunk, which bin/chunks.cjs reads and runs, shows which packages it contains.
import fs, { appendFileSync } from 'node:fs';

const file = new URL(import.meta.url).searchParams.get('file');
const { readFileSync } = fs;

fs.readFileSync = (path, ...options) => {
  const content = readFileSync(path, ...options);
  if (String(path).endsWith('.cjs') && typeof content === 'string')
    for (const name of ['openai', '@anthropic-ai/sdk'])
      if (content.includes(`node_modules/${name}/`)) appendFileSync(file, `${name}\n`);
  return content;
};
