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

it('admits several shared processes, even if they open a new folder at once', async () => {
  const locks = await Promise.all([lock('shared'), lock('shared'), lock('shared')]);
  expect(new Set(locks.map(({ folderId }) => folderId)).size).toBe(1);
});

it('refuses exclusive use while other processes use the folder, and names them', async () => {
  await lock('shared');
  held.push(enterProcesses(folder));
  await expect(lock('exclusive')).rejects.toMatchObject({
    code: 'data_folder_locked',
    message: expect.stringContaining(`in use by process ${process.pid}.`),
  });
});

it('says what to do about a damaged folder id', async () => {
  await writeFile(join(folder, 'folder.id'), '');
  for (const use of ['exclusive', 'shared'] as const)
    await expect(lock(use)).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('folder.id'),
    });
});

it('refuses every other process during exclusive use', async () => {
  await lock('exclusive');
  for (const use of ['exclusive', 'shared'] as const)
    await expect(lock(use)).rejects.toMatchObject({ code: 'data_folder_locked' });
});

it('keeps the id of the folder for later processes, shared or exclusive', async () => {
  const ids: string[] = [];
  for (const use of ['exclusive', 'shared', 'exclusive'] as const) {
    ids.push((await lock(use)).folderId);
    held.pop()?.release();
  }
  expect(new Set(ids).size).toBe(1);
});
