import { link, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { filesOf } from '#contracts/outbound.ts';
import { withoutSentMedia } from '../../src/replies/dedupe.ts';
import { parseToolSend } from '../../src/runs/tool-turns.ts';
import { exampleCapabilities } from '../channels/example/capabilities.ts';
import { type AWorkspace, aWorkspace } from '../plugins/files/a-workspace.ts';
import { aRoute } from '../replies/reply-builders.ts';
import { anOggOpus } from '../support/ogg-opus.ts';
import { type Circumstances, call } from './message-call.ts';

let files: AWorkspace;

beforeEach(async () => {
  files = await aWorkspace();
  await writeFile(join(files.workspace, 'notes.txt'), 'first');
  await writeFile(join(files.outside, 'secret.txt'), 'secret');
});

afterEach(() => files.remove());

const maxBytes = 100;

/** Calls the tool; returns its result with the files it sends and access to their copies in the media folder. */
async function send(input: object, { by = {}, ...changes }: Circumstances = {}) {
  const mediaDir = join(files.folder, 'media');
  const kept = () => readdir(mediaDir).catch(() => []);
  const circumstances: Circumstances = {
    ...{ mediaDir, readerFor: () => files.reader },
    capabilitiesFor: () => ({ ...exampleCapabilities, media: { maxBytes }, caption: { maxLength: 20 } }),
    by: { workspace: files.workspace, ...by },
    ...changes,
  };
  const result = await call(input, circumstances).catch(async (error: unknown) => {
    expect(await kept()).toEqual([]);
    throw error;
  });
  const contents = result.postings.flatMap((posting) => posting.contents);
  const media = contents.flatMap((content) => (content.kind === 'media' ? filesOf(content) : []));
  return { ...result, contents, media, bytesOf: (name: string) => readFile(join(mediaDir, name), 'utf8') };
}

describe.runIf(process.platform === 'linux')('files sent with a message', () => {
  it('copies files as they are now, with their own names and detected types', async () => {
    await writeFile(join(files.workspace, 'photo.txt'), '\x89PNG\r\n and so on', 'latin1');
    const { contents, media, bytesOf } = await send({
      text: 'Look at **this** one',
      files: ['notes.txt', './photo.txt'],
    });
    await writeFile(join(files.workspace, 'notes.txt'), 'second');
    expect(contents).toMatchObject([
      { kind: 'media', name: 'notes.txt', mimeType: 'text/plain', caption: { text: 'Look at this one' } },
      { kind: 'media', name: 'photo.txt', mimeType: 'image/png' },
    ]);
    expect(contents[1]).not.toHaveProperty('caption');
    expect(await bytesOf(media[0]?.path ?? '')).toBe('first');
  });

  it('sends files after a text too long for a caption, and without a text that asks for silence', async () => {
    const long = await send({ text: 'longer than a caption may be', files: ['notes.txt'] });
    expect(long.contents.map(({ kind }) => kind)).toEqual(['text', 'media']);
    const silent = await send({ text: 'NO_REPLY', files: ['notes.txt'] });
    expect(silent.contents.map(({ kind }) => kind)).toEqual(['media']);
    expect((await send({ files: ['notes.txt'] })).contents).toMatchObject([{ kind: 'media' }]);
  });

  it("sends only files inside the workspace, without links, up to the network's limit", async () => {
    await symlink(files.outside, join(files.workspace, 'folder'));
    await symlink(join(files.outside, 'secret.txt'), join(files.workspace, 'link.txt'));
    await link(join(files.outside, 'secret.txt'), join(files.workspace, 'hard.txt'));
    await mkdir(join(files.workspace, 'empty'));
    await writeFile(join(files.workspace, 'large.bin'), Buffer.alloc(maxBytes + 1));
    await writeFile(join(files.workspace, 'empty.txt'), '');
    for (const [path, problem] of [
      ['../outside/secret.txt', 'outside the workspace'],
      [join(files.outside, 'secret.txt'), 'outside the workspace'],
      ['folder/secret.txt', 'symbolic link'],
      ['link.txt', 'symbolic link'],
      ['hard.txt', 'hard links'],
      ['empty', 'is a folder'],
      ['missing.txt', "doesn't exist"],
      ['large.bin', 'the limit is 100'],
      ['empty.txt', 'is empty'],
    ] as const)
      await expect(send({ text: 'hi', files: ['notes.txt', path] }), path).rejects.toThrow(problem);
    await expect(send({ files: Array.from({ length: 11 }, () => 'notes.txt') })).rejects.toThrow(
      '<=10 items',
    );
  });

  it('sends no files for somebody who may not read them, or to a network without files', async () => {
    const input = { text: 'hi', files: ['notes.txt'] };
    await expect(send(input, { by: { authority: 'guest' } })).rejects.toThrow('may not have files read');
    await expect(send(input, { readerFor: () => undefined })).rejects.toThrow("can't be read here");
    const { media: _, ...without } = exampleCapabilities;
    const failure = { code: 'not_supported', message: expect.stringContaining('cannot take files') };
    await expect(send(input, { capabilitiesFor: () => without })).rejects.toMatchObject(failure);
  });

  it('finds the message of a repeated call while its network is not connected yet', async () => {
    const repeated: Circumstances = { isPosted: true, capabilitiesFor: () => undefined };
    const { output } = await send({ text: 'hi', files: ['notes.txt'], replyTo: 'current' }, repeated);
    expect(output).toMatchObject({ text: 'Sent.' });
  });

  it('sends Ogg Opus as a voice message where there are any, and says of other files that they are none', async () => {
    await writeFile(join(files.workspace, 'hello.ogg'), anOggOpus([9]));
    await writeFile(join(files.workspace, 'song.mp3'), 'ID3\x03 la la la');
    const both = { files: ['hello.ogg', 'song.mp3'], asVoice: true };
    const media = { maxBytes: 1000, voice: { hasCaption: true } };
    const capabilitiesFor = () => ({ ...exampleCapabilities, media });
    const { contents, output } = await send({ text: 'Listen', ...both }, { capabilitiesFor });
    expect(contents).toMatchObject([
      { kind: 'media', name: 'hello.ogg', asVoice: true, caption: { text: 'Listen' } },
      { kind: 'media', name: 'song.mp3' },
    ]);
    expect(contents[1]).not.toHaveProperty('asVoice');
    expect(output).toMatchObject({ text: expect.stringMatching(/aren't Ogg Opus: song\.mp3\.$/) });
    const without = { capabilitiesFor: () => ({ ...exampleCapabilities, media: { maxBytes: 1000 } }) };
    const plain = await send(both, without);
    expect(plain.contents[0]).not.toHaveProperty('asVoice');
    expect(plain.output).toMatchObject({ text: expect.stringContaining('takes no voice messages from me') });
  });

  it('does not read files again if the call has stored its message', async () => {
    const { contents, output } = await send({ text: 'hi', files: ['gone.txt'] }, { isPosted: true });
    expect(contents).toEqual([]);
    expect(output).toMatchObject({ text: 'Sent.' });
  });

  it('leaves files out of the answer that the tool has sent, unless they may not have arrived', async () => {
    const path = join(files.workspace, 'notes.txt');
    const again = { path: 'copy', source: path, mimeType: 'text/plain', name: 'notes.txt' };
    const left = async (state: 'sent' | 'unknown') => {
      const { output } = await send({ files: ['./notes.txt'] }, { end: { state } });
      const toolSend = parseToolSend('message', 'metadata' in output ? output.metadata : undefined);
      return withoutSentMedia([again], toolSend ? [toolSend] : [], aRoute());
    };
    expect(await left('sent')).toEqual([]);
    expect(await left('unknown')).toEqual([again]);
  });
});
