import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeBackup } from '../../src/backup/make-backup.ts';
import {
  backupsIn,
  listBackups,
  type Manifest,
  readManifest,
  writeManifest,
} from '../../src/backup/manifest.ts';
import { finishRestore, restoreBackup, verifyBackup } from '../../src/backup/restore.ts';
import { lockDataFolder } from '../../src/processes/folder-lock.ts';
import { endPartsAfterRestore } from '../../src/store/delivery/restore.ts';
import { migrationNames } from '../../src/store/migrate.ts';
import { isLong } from '../support/long-run.ts';
import { openStore } from '../support/open-store.ts';
import {
  actAndDie,
  aDataFolder,
  onceSeen,
  readSql,
  setState,
  stateOf,
  tornPairs,
  underLoad,
} from './backup-folder.ts';

it('backs up database, files and settings for their owner alone, and reads them back', async () => {
  const dataDir = await aDataFolder();
  const settings = join(dataDir, '../parley-backup-settings.json');
  writeFileSync(settings, '{}');
  writeFileSync(join(dataDir, 'media/run'), 'x', { mode: 0o755 });
  chmodSync(join(dataDir, 'media/run'), 0o755);
  symlinkSync('picture', join(dataDir, 'media/2026/link'));
  const { path, manifest } = await makeBackup({ dataDir, settings: [settings, '/nowhere/.env'] });
  expect(manifest.database).toMatchObject({ kind: 'sqlite', steps: migrationNames, rows: { lockouts: 1 } });
  expect(manifest.files.map(({ path: file }) => file).sort()).toEqual([
    'folder/media/2026/picture',
    'folder/media/run',
    'folder/token',
    'parley.db',
    'settings/0-parley-backup-settings.json',
  ]);
  expect(manifest.settings).toEqual([{ from: settings, file: 'settings/0-parley-backup-settings.json' }]);
  const mode = (name: string) => statSync(join(path, name)).mode & 0o777;
  expect(['.', 'folder', 'folder/media'].map(mode)).toEqual([0o700, 0o700, 0o700]);
  expect(['manifest.json', 'parley.db', 'folder/token', 'folder/media/run'].map(mode)).toEqual([
    ...[0o600, 0o600, 0o600, 0o700],
  ]);
  await verifyBackup({ path, manifest });
});

it('recognizes a backup however many files it holds', async () => {
  const { path, manifest } = await makeBackup({ dataDir: await aDataFolder(), settings: [] });
  const [file] = manifest.files;
  if (!file) throw new Error('test error: it holds no file');
  await writeManifest(path, { ...manifest, files: Array.from({ length: 260_000 }, () => file) });
  expect((await readManifest(path))?.files).toHaveLength(260_000);
});

it('leaves out a folder, file or link that vanishes just before it is copied', async () => {
  const dataDir = await aDataFolder();
  const vanishing = ['work', 'work.log', 'work.link'].map((name) => join(dataDir, 'media', name));
  const [folder = '', file = '', link = ''] = vanishing;
  mkdirSync(folder);
  writeFileSync(file, '');
  symlinkSync('work', link);
  onceSeen(vanishing, async (path) => rmSync(path, { recursive: true }));
  const backup = await makeBackup({ dataDir, settings: [] });
  expect(readdirSync(join(backup.path, 'folder/media'))).toEqual(['2026']);
  await verifyBackup(backup);
});

it('refuses to write a backup into the data folder, even through a link', async () => {
  const dataDir = await aDataFolder();
  const link = `${dataDir}-link`;
  symlinkSync(join(dataDir, 'media'), link);
  onTestFinished(() => rmSync(link));
  for (const to of [dataDir, join(dataDir, 'media'), join(dataDir, 'mine/deep'), link, join(link, 'new')])
    await expect(makeBackup({ dataDir, to, settings: [] }), to).rejects.toThrow('is in the data folder');
  expect(readdirSync(dataDir)).not.toContain('mine');
  const { path, manifest } = await makeBackup({
    ...{ dataDir, to: join(dataDir, 'backups/weekly'), settings: [] },
  });
  expect(manifest.entries).toEqual(['media', 'token']);
  await verifyBackup({ path, manifest });
});

it('restores everything and keeps the replaced state, which can be restored, too', async () => {
  const dataDir = await aDataFolder('first');
  // Points to a disk that isn't mounted.
  const link = join(dataDir, 'workspace');
  symlinkSync('/nowhere/first', link);
  const backup = await makeBackup({ dataDir, settings: [] });
  setState(dataDir, 'second');
  rmSync(link);
  symlinkSync('/nowhere/second', link);
  const { kept } = await restoreBackup({ dataDir, backup });
  expect(stateOf(dataDir)).toEqual(['first', 'first', 'first']);
  expect(readlinkSync(link)).toBe('/nowhere/first');
  const manifest = await readManifest(kept);
  if (manifest === undefined) throw new Error('what was replaced is no backup');
  await restoreBackup({ dataDir, backup: { path: kept, manifest } });
  expect(stateOf(dataDir)).toEqual(['second', 'second', 'second']);
  expect(readlinkSync(link)).toBe('/nowhere/second');
  const store = await openStore({ kind: 'sqlite', dataDir });
  expect(await store.write(endPartsAfterRestore, {})).toEqual({ madeAt: manifest.madeAt, parts: 0 });
  expect(await store.write(endPartsAfterRestore, {})).toBeUndefined();
  await store.close();
});

it('restores on a new machine, whose empty folder is not kept', async () => {
  const backup = await makeBackup({ dataDir: await aDataFolder('first'), settings: [] });
  const dataDir = mkdtempSync(join(tmpdir(), 'parley-new-machine-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  await restoreBackup({ dataDir, backup });
  expect(stateOf(dataDir)).toEqual(['first', 'first', 'first']);
  expect(await listBackups(dataDir)).toEqual([]);
});

it('replaces nothing by a backup that was changed', async () => {
  const dataDir = await aDataFolder();
  const backup = await makeBackup({ dataDir, settings: [] });
  setState(dataDir, 'second');
  writeFileSync(join(backup.path, 'folder/token'), 'fi4st');
  await expect(restoreBackup({ dataDir, backup })).rejects.toThrow(
    /folder\/token was changed.*Nothing was replaced/,
  );
  expect(stateOf(dataDir)).toEqual(['second', 'second', 'second']);
  await expect(restoreBackup({ dataDir, backup, databaseUrl: 'postgres://nowhere/x' })).rejects.toThrow(
    'backup of sqlite',
  );
});

describe('a backup that somebody else may have changed', () => {
  /** Changes the files, or returns another manifest. */
  type Change = (path: string, manifest: Manifest) => unknown;
  const changes: readonly (readonly [string, Change, RegExp])[] = [
    [
      'an entry above the data folder',
      (_, m) => ({ ...m, entries: ['../parley-evil'] }),
      /never in a backup/,
    ],
    ['an absolute entry', (_, m) => ({ ...m, entries: ['/tmp/parley-evil'] }), /never in a backup/],
    [
      'an entry in a folder of another',
      (_, m) => ({ ...m, entries: ['media/../../x'] }),
      /never in a backup/,
    ],
    ['an entry that is the folder itself', (_, m) => ({ ...m, entries: ['.'] }), /never in a backup/],
    [
      "an entry among Parley's own files",
      (_, m) => ({ ...m, entries: ['parley.lock'] }),
      /never in a backup/,
    ],
    [
      'a file above the backup',
      (_, m) => ({ ...m, files: [...m.files, { path: '../token', bytes: 0, sha256: '' }] }),
      /outside the backup/,
    ],
    [
      'a database above the backup',
      (_, m) => ({ ...m, database: { ...m.database, file: '../other.db' } }),
      /outside the backup/,
    ],
    [
      'a file that the list lacks',
      (path) => writeFileSync(join(path, 'folder/media/new'), ''),
      /list of files/,
    ],
    ['a log of the database', (path) => writeFileSync(join(path, 'parley.db-wal'), ''), /list of files/],
    [
      'a link that the list lacks',
      (path) => symlinkSync('/etc', join(path, 'folder/media/etc')),
      /list of links/,
    ],
    [
      'a link in place of a folder',
      (path) => {
        renameSync(join(path, 'folder/media/2026'), `${path}-2026`);
        symlinkSync(`${path}-2026`, join(path, 'folder/media/2026'));
      },
      /list of links/,
    ],
    [
      'a link that leads out, in a backup without a list of links',
      (path, { links: _, ...older }) => {
        symlinkSync('../../../..', join(path, 'folder/media/out'));
        return older;
      },
      /leads out of the backup/,
    ],
    [
      'a state moved aside by another folder',
      (_, m) => ({ ...m, kind: 'replaced' }),
      /only accepted in the data/,
    ],
  ];
  it.each(changes)('refuses a backup for %s and replaces nothing', async (_name, change, problem) => {
    const dataDir = await aDataFolder();
    const { path, manifest } = await makeBackup({ dataDir, settings: [] });
    const changed = (change(path, manifest) ?? manifest) as Manifest;
    setState(dataDir, 'second');
    const restored = restoreBackup({ dataDir, backup: { path, manifest: changed } });
    await expect(restored).rejects.toThrow(problem);
    expect(stateOf(dataDir)).toEqual(['second', 'second', 'second']);
  });

  it('accepts a backup without a list of links if its links stay inside', async () => {
    const dataDir = await aDataFolder();
    symlinkSync('picture', join(dataDir, 'media/2026/link'));
    const { path, manifest } = await makeBackup({ dataDir, settings: [] });
    const { links: _, ...older } = manifest;
    await restoreBackup({ dataDir, backup: { path, manifest: older } });
    expect(readlinkSync(join(dataDir, 'media/2026/link'))).toBe('picture');
  });
});

it('backs up one state only: not during an unfinished restore nor across a finished one', async () => {
  const dataDir = await aDataFolder();
  const backup = await makeBackup({ dataDir, settings: [] });
  onceSeen([join(dataDir, 'token')], () => restoreBackup({ dataDir, backup }));
  await expect(makeBackup({ dataDir, settings: [] })).rejects.toThrow('A restore is replacing');
  expect(await actAndDie(['restore', dataDir, 'moved', backup.path])).toBeUndefined();
  await expect(makeBackup({ dataDir, settings: [] })).rejects.toThrow('A restore is replacing');
  await finishRestore({ dataDir });
  expect(await makeBackup({ dataDir, settings: [] })).toMatchObject({ manifest: { kind: 'backup' } });
});

it('makes whole backups under load, and a kill leaves no incomplete one', async () => {
  const dataDir = await aDataFolder();
  await underLoad(dataDir);
  const { path } = await makeBackup({ dataDir, settings: [] });
  expect(tornPairs(path)).toEqual([]);
  const operations = (await actAndDie(['backup', dataDir])) ?? 0;
  for (const at of momentsOf(operations)) {
    expect(await actAndDie(['backup', dataDir, String(at)])).toBeUndefined();
    for (const backup of await listBackups(backupsIn(dataDir))) await verifyBackup(backup);
  }
  await makeBackup({ dataDir, settings: [] });
  expect(readdirSync(backupsIn(dataDir)).filter((name) => name.endsWith('.unfinished'))).toEqual([]);
});

it('restores a backup whole or not at all, whenever the restore is killed', async () => {
  const dataDir = await aDataFolder('first');
  const nextStart = async () => {
    const lock = await lockDataFolder(
      dataDir,
      'exclusive',
      async () => void (await finishRestore({ dataDir })),
    );
    lock.release();
    return lock.folderId;
  };
  const folderId = await nextStart();
  const { path } = await makeBackup({ dataDir, settings: [] });
  const seen = new Set<string>();
  const operations = (await actAndDie(['restore', dataDir, '0', path])) ?? 0;
  for (const at of momentsOf(operations)) {
    setState(dataDir, 'second');
    await actAndDie(['restore', dataDir, String(at), path]);
    expect(await nextStart()).toBe(folderId);
    const [database, ...files] = stateOf(dataDir);
    expect(files).toEqual([database, database]);
    seen.add(database ?? '');
    const kept = readdirSync(dataDir).filter((name) => name.startsWith('replaced-'));
    const [last] = kept.sort().slice(-1);
    if (database === 'first' && last !== undefined) {
      expect(readSql(join(dataDir, last), 'select source from lockouts')).toEqual([{ source: 'second' }]);
      expect(readFileSync(join(dataDir, last, 'folder/folder.id'), 'utf8')).toBe(folderId);
    }
  }
  expect([...seen].sort()).toEqual(['first', 'second']);
});

/** Every operation, or some spread from the first to the last. */
function momentsOf(operations: number): readonly number[] {
  const all = Array.from({ length: operations }, (_, index) => index + 1);
  const step = Math.ceil(operations / 4);
  return isLong ? all : all.filter((at) => (operations - at) % step === 0);
}
