import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { plainText } from '#contracts/formatted-text.ts';
import { messageId, partKey } from '#contracts/ids.ts';
import type { OutboundContent, OutboundMedia } from '#contracts/outbound.ts';
import { startTelegramServer, type TelegramServer } from '../../platforms/telegram/server.ts';
import { anOggOpus } from '../../support/ogg-opus.ts';
import { aFolder } from '../../support/own-folder.ts';
import { ada, newAdapter, routeTo } from './telegram-setup.ts';

const forever = new AbortController().signal;
const caption = { text: 'look here', spans: [{ kind: 'bold', start: 0, length: 4 }] } as const;
let server: TelegramServer;
let adapter: ReturnType<typeof newAdapter>;
let folder: string;

beforeEach(async () => {
  server = await startTelegramServer();
  server.world.addPrivateChat(ada);
  adapter = newAdapter(server);
  await adapter.identify(forever);
  folder = aFolder();
});
afterEach(async () => {
  await adapter.stop();
  await server.close();
});

const send = (content: OutboundContent) =>
  adapter.send({ key: partKey('r:1:t'), route: routeTo(server, ada.id), content }, forever);
const methods = () => server.sent.map(({ method }) => method);

async function aFile(name: string, mimeType: string, bytes: string | Buffer = name) {
  const path = join(folder, name);
  await writeFile(path, bytes);
  return { path, name, mimeType };
}

async function anAlbum(...files: readonly (readonly [name: string, mimeType: string, bytes?: string])[]) {
  const written = await Promise.all(files.map((file) => aFile(...file)));
  return { kind: 'media', files: written, caption } as const satisfies OutboundMedia;
}

it('sends an album in one call, with one id for each file and the text under it', async () => {
  const album = await anAlbum(['a.png', 'image/png'], ['b.mp4', 'video/mp4'], ['c.jpg', 'image/jpeg']);
  const result = await send(album);
  const shown = server.botMessages(ada.id);
  expect(result).toEqual({ kind: 'sent', receipts: shown.map((one) => String(one.messageId)) });
  expect(shown.map(({ file, text }) => [file?.name, text])).toEqual([
    ['a.png', 'look here'],
    ['b.mp4', ''],
    ['c.jpg', ''],
  ]);
  expect(shown[0]?.entities).toMatchObject([{ type: 'bold', offset: 0, length: 4 }]);
  expect(new Set(shown.map(({ message }) => message.media_group_id)).size).toBe(1);
  expect(methods()).toEqual(['sendMediaGroup']);
});

it.each([
  'failed to send message #2 with the error message "PHOTO_INVALID_DIMENSIONS"',
  'group send failed',
  'MEDIA_INVALID',
])('reports an album that Telegram refuses as rejected, and sends nothing of it (%s)', async (why) => {
  server.fault({ kind: 'refuse', code: 400, description: `Bad Request: ${why}` }, {});
  const result = await send(await anAlbum(['a.png', 'image/png'], ['b.png', 'image/png']));
  expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
  expect(server.botMessages(ada.id)).toEqual([]);
});

it('waits for an album as long as Telegram asks', async () => {
  const parameters = { retry_after: 7 };
  server.fault({ kind: 'refuse', code: 429, description: 'Too Many Requests: retry after 7', parameters });
  const result = await send(await anAlbum(['a.png', 'image/png'], ['b.png', 'image/png']));
  expect(result).toMatchObject({ kind: 'retry', afterMs: 7000 });
});

it('reports an album as unknown if its answer is lost', async () => {
  server.fault({ kind: 'drop-answer' });
  const result = await send(await anAlbum(['a.png', 'image/png'], ['b.png', 'image/png']));
  expect(result.kind).toBe('unknown');
  expect(server.botMessages(ada.id)).toHaveLength(2);
});

it.each([
  ['sendVideo', 'video/mp4', 'VIDEO_FILE_INVALID'],
  ['sendAnimation', 'image/gif', 'wrong type of file'],
  ['sendAudio', 'audio/mpeg', 'AUDIO_CONTENT_INVALID'],
  ['sendPhoto', 'image/png', 'PHOTO_INVALID_DIMENSIONS'],
])('%s falls back to a document, with the text, if Telegram refuses it', async (method, mimeType, why) => {
  server.fault({ kind: 'refuse', code: 400, description: `Bad Request: ${why}` }, { method });
  const result = await send({ kind: 'media', ...(await aFile('a.bin', mimeType)), caption });
  const [shown] = server.botMessages(ada.id);
  expect(result).toEqual({ kind: 'sent', receipts: [String(shown?.messageId)] });
  expect(methods()).toEqual([method, 'sendDocument']);
  expect(shown).toMatchObject({ text: 'look here', file: { name: 'a.bin' } });
});

it('sends no other kind of file where a group forbids one', async () => {
  const description = 'Bad Request: CHAT_SEND_VIDEOS_FORBIDDEN';
  server.fault({ kind: 'refuse', code: 400, description }, { method: 'sendVideo' });
  const result = await send({ kind: 'media', ...(await aFile('a.mp4', 'video/mp4')) });
  expect(result.kind).toBe('failed');
  expect(methods()).toEqual(['sendVideo']);
});

it.each(['VOICE_MESSAGES_FORBIDDEN', 'Voice_messages_forbidden'])(
  'sends a voice message as a file, with its text, to somebody who accepts none (%s)',
  async (why) => {
    const voice = await aFile('hello.ogg', 'audio/ogg', anOggOpus([40, 60, 20]));
    const content = { kind: 'media', ...voice, caption, asVoice: true } as const;
    expect((await send(content)).kind).toBe('sent');
    server.fault({ kind: 'refuse', code: 400, description: `Bad Request: ${why}` }, { method: 'sendVoice' });
    expect((await send(content)).kind).toBe('sent');
    expect(methods()).toEqual(['sendVoice', 'sendVoice', 'sendDocument']);
    const shown = server.botMessages(ada.id);
    expect(shown.map(({ text }) => text)).toEqual(['look here', 'look here']);
    expect(shown[0]?.message).toHaveProperty('voice');
  },
);

it('edits the text under a file', async () => {
  await send({ kind: 'media', ...(await aFile('a.png', 'image/png')), caption });
  const [shown] = server.botMessages(ada.id);
  const id = messageId(String(shown?.messageId));
  const edit = { kind: 'edit', messageId: id, text: plainText('now this'), isCaption: true } as const;
  expect(await send(edit)).toEqual({ kind: 'sent', receipts: [id] });
  expect(server.botMessages(ada.id)).toMatchObject([{ text: 'now this', file: { name: 'a.png' } }]);
});
