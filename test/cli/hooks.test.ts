import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

/** A home whose configuration lists scripts that aren't in its workspace yet. */
async function aHome(...hooks: readonly object[]) {
  const home = aFolder();
  const settings = join(home, 'parley.config.json');
  await writeFile(settings, JSON.stringify({ port: 0, hooks }, null, 4));
  const folder = join(home, 'data', 'workspace', 'hooks');
  await mkdir(folder, { recursive: true });
  const run = (...args: readonly string[]) =>
    runParley(['hooks', ...args], { PARLEY_TEST_HOME: home, PARLEY_DATA_DIR: join(home, 'data') });
  const listed = async (): Promise<{ readonly hooks: readonly { readonly digest?: string }[] }> =>
    JSON.parse(await readFile(settings, 'utf8'));
  return { run, listed, settings, script: join(folder, 'guard.sh') };
}

it('accepts a script as it is, and says what to do about any other', { timeout: 120_000 }, async () => {
  const { run, listed, settings, script } = await aHome({ event: 'before_tool_call', run: 'guard.sh' });
  const accept = () => run('accept', 'guard.sh');
  expect((await run('accept', 'gaurd.sh')).stderr).toContain(
    'No hook runs gaurd.sh. Add it to the configuration first: {"hooks":[{"event":"before_tool_call"',
  );
  expect(await accept()).toMatchObject({ code: 1, stderr: expect.stringContaining('guard.sh is missing') });
  await writeFile(script, '#!/bin/sh\nexit 0\n');
  expect((await accept()).stderr).toContain(`Run: chmod +x ${script}`);
  expect((await listed()).hooks[0]).not.toHaveProperty('digest');

  await chmod(script, 0o755);
  expect((await run('list')).stdout).toMatch(/guard\.sh {2}not accepted; see: .*hooks accept guard\.sh/);
  const accepted = await accept();
  expect(accepted).toMatchObject({ code: 0, stderr: '' });
  expect(accepted.stdout).toContain('It runs with Parley’s rights, outside any sandbox.');
  const [, digest = ''] = /\((sha256-[0-9a-f]{64})\)/.exec(accepted.stdout) ?? [];
  expect((await listed()).hooks).toEqual([{ event: 'before_tool_call', run: 'guard.sh', digest }]);
  expect(await readFile(settings, 'utf8')).toMatch(/^\{\n {4}"port": 0,/);
  expect((await run('list')).stdout).toContain('before_tool_call  guard.sh  accepted');

  await writeFile(script, '#!/bin/sh\nexit 1\n');
  expect((await run('list')).stdout).toContain('guard.sh  not accepted');
  expect(JSON.parse((await run('list', '--json')).stdout)).toMatchObject([{ isAccepted: false }]);
});

it.each([
  ['tool_result_persist', 'has to answer at once, which a script can’t; use after_tool_call'],
  ['before_lunch', 'there is no hook before_lunch; docs/hooks.md lists them'],
])('accepts no script for %s, which would never run', { timeout: 120_000 }, async (event, problem) => {
  const { run, listed, script } = await aHome({ event, run: 'guard.sh' });
  await writeFile(script, '#!/bin/sh\n', { mode: 0o755 });
  expect((await run('accept', 'guard.sh')).stderr).toContain(problem);
  expect((await run('list')).stdout).toContain(problem);
  expect((await listed()).hooks[0]).not.toHaveProperty('digest');
});
