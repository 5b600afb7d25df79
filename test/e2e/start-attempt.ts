import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { patienceMs } from '../support/patience.ts';

export type Attempt = {
  readonly env?: Readonly<Record<string, string>>;
  /** Files to put into the folder first, by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** Once it has printed this, it is stopped, as a person would do. */
  readonly until?: RegExp;
};

export type Failure = {
  readonly code: number | null;
  /** Everything printed to the person: both outputs together. */
  readonly words: string;
};

/** Runs `parley start` in its own folder, to its end; `code` is null if it had to be killed. */
export async function tryToStart({ env = {}, files = {}, until }: Attempt): Promise<Failure> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-start-'));
  try {
    for (const [path, text] of Object.entries(files)) await writeFile(join(folder, path), text);
    return await run(folder, { env, until });
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function run(
  cwd: string,
  { env, until }: { readonly env: NonNullable<Attempt['env']>; readonly until: RegExp | undefined },
): Promise<Failure> {
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../bin/parley.mjs'), 'start'], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: cwd,
      PARLEY_TEST_HOME: cwd,
      PARLEY_PORT: '0',
      PARLEY_DATA_DIR: '.',
      ...env,
    },
  });
  let words = '';
  let isStopped = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      words += text;
      // Only once: a second signal would end it immediately.
      if (isStopped || !until?.test(words)) return;
      isStopped = child.kill('SIGTERM');
    });
  }
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
  const code = await new Promise<number | null>((resolve) =>
    child.once('close', (status) => resolve(status)),
  );
  clearTimeout(timer);
  return { code, words };
}
