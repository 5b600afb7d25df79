import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

it('says so when Parley has never run on this data folder', () => {
  const { status, stderr } = spawnSync(process.execPath, ['../../bin/parley.mjs', 'outbox', 'list'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, PARLEY_TEST_HOME: '/nowhere', PARLEY_DATA_DIR: '/nowhere' },
  });
  expect(stderr).toMatch(/^There is no database in \/nowhere: .*PARLEY_DATA_DIR.*\n$/);
  expect(status).toBe(1);
});
