import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type FolderLock, type FolderUse, lockDataFolder } from '../../src/processes/folder-lock.ts';
import { enterProcesses } from '../../src/processes/process-files.ts';

let folder: string;
const held: { release(): void }[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-folder-'));
});
afterEach(async () => {
  for (const lock of held.splice(0)) lock.release();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

const lock = async (use: FolderUse): Promise<FolderLock> => {
  const taken = await lockDataFolder(folder, use);
  held.push(taken);
  return taken;
};

it('lets those in side by side who are content with it, also when they come at once to a new folder', async () => {
  const locks = await Promise.all([lock('shared'), lock('shared'), lock('shared')]);
  expect(new Set(locks.map(({ folderId }) => folderId)).size).toBe(1);
});

it('refuses one who wants it alone while others have it, and names them', async () => {
  await lock('shared');
  held.push(enterProcesses(folder));
  await expect(lock('exclusive')).rejects.toMatchObject({
    code: 'data_folder_locked',
    message: expect.stringContaining(`in use by process ${process.pid}.`),
  });
});

it('says what to do about a name that is damaged', async () => {
  await writeFile(join(folder, 'folder.id'), '');
  for (const use of ['exclusive', 'shared'] as const)
    await expect(lock(use)).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('folder.id'),
    });
});

it('refuses everybody while one has it alone', async () => {
  await lock('exclusive');
  for (const use of ['exclusive', 'shared'] as const)
    await expect(lock(use)).rejects.toMatchObject({ code: 'data_folder_locked' });
});

it('is the same folder for whoever comes later, alone or not', async () => {
  const ids: string[] = [];
  for (const use of ['exclusive', 'shared', 'exclusive'] as const) {
    ids.push((await lock(use)).folderId);
    held.pop()?.release();
  }
  expect(new Set(ids).size).toBe(1);
});
