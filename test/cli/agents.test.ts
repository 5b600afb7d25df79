import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

it('lists the configured agents before Parley has run', async () => {
  const dataDir = aFolder();
  const configPath = join(dataDir, 'parley.config.json');
  const agents = [{ id: 'ada', name: 'Ada', model: 'demo' }, { id: 'bob' }];
  await writeFile(configPath, JSON.stringify({ agents, defaultAgent: 'bob' }));
  const env = { PARLEY_DATA_DIR: dataDir, PARLEY_CONFIG: configPath };
  const { code, stdout } = await runParley(['agents', 'list', '--json'], env);
  expect(code).toBe(0);
  const listed = JSON.parse(stdout);
  expect(listed).toMatchObject([
    { id: 'ada', name: 'Ada', isDefault: false, model: 'demo' },
    { id: 'bob', isDefault: true, model: 'demo', workspace: expect.stringContaining(dataDir) },
  ]);
  const lines = (await runParley(['agents', 'list'], env)).stdout.split('\n');
  expect(lines[0]).toBe(`ada  “Ada”  model demo  ${listed[0].workspace}`);
  expect(lines[1]).toMatch(/^bob {2}.* {2}default, model demo {2}/);
});
