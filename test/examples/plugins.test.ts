import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';

/** The examples' tests run as a plugin's own do: by Node.js, with the kit. */
it('runs the examples of plugins in a real gateway', async () => {
  const child = spawn(
    process.execPath,
    ['--import=./bin/plugin-kit.mjs', '--test', 'examples/plugins/examples.test.ts'],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { PATH: process.env.PATH, HOME: process.env.HOME } },
  );
  const [code, output] = await Promise.all([
    new Promise((resolve) => child.once('exit', resolve)),
    text(child.stdout),
  ]);
  expect(code, output).toBe(0);
});
