import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Runs `parley …` in its own process, which inherits only PATH and HOME from this one's environment. */
export async function runParley(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const child = spawn(process.execPath, ['../../bin/parley.mjs', ...args], {
    cwd: import.meta.dirname,
    // Its home isn't the checkout, whose .env is the developer's.
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PARLEY_TEST_HOME: '/nowhere', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [code, stdout, stderr] = await Promise.all([
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code, stdout, stderr };
}
