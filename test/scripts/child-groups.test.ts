import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createChildGroups } from '../../scripts/child-groups.mjs';
import { aFolder } from '../support/own-folder.ts';

it('ends a child process together with everything it has started', async () => {
  const folder = aFolder();
  const started = join(folder, 'pid');
  const groups = createChildGroups();
  const code = groups.run('/bin/sh', [
    '-c',
    `sleep 600 & echo $! > ${started}.new; mv ${started}.new ${started}; wait`,
  ]);
  await expect.poll(() => readFile(started, 'utf8').catch(() => '')).toMatch(/^\d+\n$/);
  const below = Number(await readFile(started, 'utf8'));

  await groups.endAll();
  expect(await code).not.toBe(0);
  await expect.poll(() => isRunning(below)).toBe(false);
  await groups.endAll();
});

/** A process that has ended counts as gone even before its exit status has been collected. */
async function isRunning(pid: number): Promise<boolean> {
  const state = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return state !== '' && !/\) Z /.test(state);
}
