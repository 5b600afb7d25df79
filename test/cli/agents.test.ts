import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aFolder } from '../support/own-folder.ts';
import { runParley } from './run-parley.ts';

it('lists the agents of the configuration, what they are good at and who may ask them', async () => {
  const home = aFolder();
  const clerk = { id: 'clerk', name: 'Cleo', specialty: 'Knows the files.', capabilities: ['find dates'] };
  const own = { subagents: { allowAgents: ['main', 'clerk'] }, workspace: '/tmp/main' };
  const agents = [
    { id: 'main', ...own },
    { ...clerk, model: 'demo', workspace: '/tmp/clerk' },
  ];
  await writeFile(join(home, 'parley.config.json'), JSON.stringify({ agents }));
  const list = (...args: readonly string[]) =>
    runParley(['agents', 'list', ...args], { PARLEY_TEST_HOME: home, PARLEY_DATA_DIR: join(home, 'data') });
  expect((await list()).stdout).toBe(
    'main  “Parley”  default, model demo  /tmp/main\n  asked by: itself\n' +
      'clerk  “Cleo”  model demo  /tmp/clerk\n  Knows the files.\n  can: find dates\n  asked by: itself, main\n',
  );
  expect(JSON.parse((await list('--json')).stdout)).toMatchObject([
    { id: 'main', name: 'Parley', capabilities: [], isDefault: true, model: 'demo', askedBy: ['main'] },
    { ...clerk, isDefault: false, model: 'demo', askedBy: ['main', 'clerk'], workspace: '/tmp/clerk' },
  ]);
});
