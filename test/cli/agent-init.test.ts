import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

it('creates the files that shape an agent and keeps existing ones', {
  timeout: 120_000,
}, async () => {
  const dataDir = aFolder();
  const workspace = join(dataDir, 'workspace');
  await mkdir(workspace);
  await writeFile(join(workspace, 'SOUL.md'), 'mine');
  const env = { PARLEY_DATA_DIR: dataDir };
  const { code, stdout } = await runParley(['agent', 'init'], env);
  expect(code).toBe(0);
  expect(stdout).toMatch(/AGENTS\.md +created\n +SOUL\.md +kept/);
  expect(await readFile(join(workspace, 'SOUL.md'), 'utf8')).toBe('mine');
  expect((await readdir(workspace)).sort()).toEqual(
    ['AGENTS.md', 'IDENTITY.md', 'MEMORY.md', 'SOUL.md', 'TOOLS.md', 'USER.md'].sort(),
  );
  const again = JSON.parse((await runParley(['agent', 'init', '--json'], env)).stdout);
  expect(again).toMatchObject({ agent: 'main', workspace, files: Array(6).fill({ isNew: false }) });
  expect((await runParley(['agent', 'init', '--agent', 'nobody'], env)).stderr).toContain('“nobody”');
});
