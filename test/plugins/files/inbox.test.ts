/** The folder `inbox` of a workspace: the files of a conversation's messages, as its agent's file tools see them. */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ReceivedFile } from '#contracts/tool.ts';
import { nameReceivedFiles } from '../../../src/runs/received-files.ts';
import { type AWorkspace, aWorkspace } from './a-workspace.ts';

let media = '';
let received: ReceivedFile[] = [];
let files: AWorkspace;

beforeEach(async () => {
  media = await mkdtemp(join(tmpdir(), 'parley-media-'));
  received = [];
  files = await aWorkspace({}, { receivedFiles: async () => received });
  return async () => {
    await files.remove();
    await rm(media, { recursive: true, force: true });
  };
});

async function receive(name: string, text: string): Promise<void> {
  const path = join(media, `item.${String(received.length).padStart(8, '0')}`);
  await writeFile(path, text);
  received.push({ name, path, sizeBytes: Buffer.byteLength(text) });
}

describe.runIf(process.platform === 'linux')('the folder inbox', () => {
  it('contains the files of the messages under their names', async () => {
    await receive('rent.txt', 'due on Monday');
    await receive('a b.csv', 'x;y');
    await writeFile(join(files.workspace, 'own.txt'), 'mine');
    expect(await files.call('list', {})).toBe('inbox/\nown.txt');
    expect(await files.call('list', { path: 'inbox' })).toBe('a b.csv\nrent.txt');
    expect(await files.call('read', { path: 'inbox/rent.txt' })).toContain('due on Monday');
    expect(await files.call('grep', { pattern: 'Monday|mine' })).toMatch(/own\.txt[\s\S]*inbox\/rent\.txt/);
    expect(await files.call('grep', { pattern: 'x', path: 'inbox' })).toContain('inbox/a b.csv');
    expect(await files.call('glob', { pattern: '**/*.txt' })).toContain('inbox/rent.txt');
    expect(await readdir(files.workspace)).toEqual(['own.txt']);
  });

  it('refuses to change a file of a message', async () => {
    await receive('rent.txt', 'due on Monday');
    await expect(files.call('write', { path: 'inbox/rent.txt', content: 'x' })).rejects.toThrow(
      "can't be changed",
    );
    await expect(files.call('edit', { path: 'inbox/rent.txt', old: 'due', new: 'x' })).rejects.toThrow();
    expect(await readFile(received[0]?.path ?? '', 'utf8')).toBe('due on Monday');
  });

  it('reads no other file of the media folder, and none through a link', async () => {
    await receive('rent.txt', 'due on Monday');
    await writeFile(join(media, 'other.00000001'), 'of somebody else');
    await symlink('/etc/passwd', join(media, 'link'));
    received.push({ name: 'link', path: join(media, 'link'), sizeBytes: 1 });
    for (const path of [
      'inbox/other.00000001',
      'inbox/item.00000000',
      'inbox/link',
      'inbox/../../media',
      'inbox/rent.txt/x',
    ])
      await expect(files.call('read', { path }), path).rejects.toMatchObject({ code: 'tool_failed' });
  });

  it("leaves a workspace's own folder of that name in place", async () => {
    await mkdir(join(files.workspace, 'inbox'));
    await writeFile(join(files.workspace, 'inbox/own.txt'), 'mine');
    expect(await files.call('list', { path: 'inbox' })).toBe('own.txt');
    await receive('rent.txt', 'due');
    expect(await files.call('list', { path: 'inbox' })).toBe('own.txt\nrent.txt');
    expect(await files.call('read', { path: 'inbox/own.txt' })).toContain('mine');
    await files.call('write', { path: 'inbox/new.txt', content: 'x' });
    expect(await readFile(join(files.workspace, 'inbox/new.txt'), 'utf8')).toBe('x');
  });
});

it('gives each file a name of its own that leads nowhere', () => {
  const named = (...names: readonly string[]) =>
    nameReceivedFiles(
      '/media',
      names.map((name) => ({ kind: 'stored', path: 'p', mimeType: 'text/plain', sizeBytes: 1, name })),
    ).map(({ name }) => name);
  expect(named('a.txt', 'a.txt', 'a.txt', 'voice', 'voice')).toEqual([
    ...['a.txt', 'a (2).txt', 'a (3).txt'],
    ...['voice', 'voice (2)'],
  ]);
  for (const name of named('../../x', '..', '.', '', '/etc/passwd', 'a\u0000b', 'a\nb', '\u202egnp.exe')) {
    expect(name).toMatch(/^[^/\\\p{Cc}\u202e]+$/u);
    expect(['.', '..']).not.toContain(name);
  }
});
