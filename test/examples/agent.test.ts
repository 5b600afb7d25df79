import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

const file = 'examples/agent/one-tool.ts';

/** Runs an example as its reader does. */
async function run(env: Record<string, string> = {}): Promise<string> {
  const child = spawn(process.execPath, [file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, ...env },
  });
  return text(child.stdout);
}

it('runs the loop with a tool in ten statements', async () => {
  expect(await run()).toMatch(/I call the tool “roll”\..*The tool answered: [1-6]$/);
});

it('shows the same example in the documentation of the library', async () => {
  const example = await readFile(file, 'utf8');
  expect(await readFile('docs/library.md', 'utf8')).toContain(example);
});
