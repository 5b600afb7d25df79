import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { Clock } from '#contracts/clock.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { messageId, partKey, threadId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { connectBot } from '../../../channels/telegram/bot-api.ts';
import { telegramConfig } from '../../../channels/telegram/config.ts';
import { outboundFetch } from '../../../src/http/outbound-fetch.ts';
import { startTelegramServer, type TelegramServer } from '../../platforms/telegram/server.ts';
import { aFolder } from '../../support/own-folder.ts';
import { recordingLog } from '../../support/silent-log.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { ada, hastyClock, newAdapter, routeTo } from './telegram-setup.ts';

const forever = new AbortController().signal;
let server: TelegramServer;
let adapter: ReturnType<typeof newAdapter>;
let dm: ReplyRoute;

beforeEach(async () => {
  server = await startTelegramServer();
  server.world.addPrivateChat(ada);
  dm = routeTo(server, ada.id);
  adapter = newAdapter(server);
  await adapter.identify(forever);
});
afterEach(async () => {
  await adapter.stop();
  await server.close();
});

const send = (content: OutboundContent, route: ReplyRoute = dm) =>
  adapter.send({ key: partKey('r:1:t'), route, content }, forever);
const text = (value: string): OutboundContent => ({ kind: 'text', text: plainText(value) });
const methods = (name: string) => server.calls.filter((call) => call.method === name);

describe('identify', () => {
  it('reports Telegram as unavailable for now if it does not respond to identify', async () => {
    await server.goAway();
    const failure = newAdapter(server).identify(forever);
    await expect(failure).rejects.toMatchObject({ code: 'channel_unavailable', retry: { kind: 'later' } });
  });

  it("keeps the token and the address out of identify's error", async () => {
    server.revokeToken();
    const failure: unknown = await newAdapter(server)
      .identify(forever)
      .catch((error: unknown) => error);
    expect(`${String(failure)} ${JSON.stringify(failure)}`).not.toContain(server.token.split(':')[1]);
  });
});

describe('configuration', () => {
  it.each(['', 'undefined', 'YOUR_TOKEN_HERE', '123456:', ':abc', '123456:short'])(
    'refuses %j as a token',
    (token) => {
      expect(telegramConfig.safeParse({ token }).success).toBe(false);
    },
  );

  it('accepts a token as text or as a secret, and an apiRoot with or without a slash', () => {
    const token = '123456:AAE-abcdefghijklmnop';
    expect(telegramConfig.parse({ token }).token).toBe(token);
    const config = telegramConfig.parse({ token: { reveal: () => token }, apiRoot: 'http://127.0.0.1:81/' });
    expect(config).toMatchObject({ token, apiRoot: 'http://127.0.0.1:81' });
  });
});

describe('topics', () => {
  it('answers in the topic asked in, and in the General topic without naming it', async () => {
    const { chat } = server.world.addSupergroup('Forum', { isForum: true });
    const topic = server.world.addTopic(chat.id, 'Plans', ada);
    const forum = routeTo(server, chat.id);
    expect((await send(text('in plans'), { ...forum, thread: threadId(String(topic)) })).kind).toBe('sent');
    expect((await send(text('in general'), forum)).kind).toBe('sent');
    expect((await send(text('in general too'), { ...forum, thread: threadId('1') })).kind).toBe('sent');
    expect(server.botMessages(chat.id).map(({ text: shown, threadId: where }) => [shown, where])).toEqual([
      ['in plans', topic],
      ['in general', undefined],
      ['in general too', undefined],
    ]);
  });

  it('reports a topic that is gone as thread-gone', async () => {
    const { chat } = server.world.addSupergroup('Forum', { isForum: true });
    const result = await send(text('x'), { ...routeTo(server, chat.id), thread: threadId('99') });
    expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'thread-gone' } });
  });
});

describe('a group that became a supergroup', () => {
  it("answers a send to a migrated group's old id with its new id", async () => {
    const { chat } = server.world.addGroup('Old');
    const grown = server.people.migrates(chat.id);
    const result = await send(text('x'), routeTo(server, chat.id));
    expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'migrated', to: String(grown) } });
  });
});

describe('a reply', () => {
  it('quotes the message it replies to, and sends without the quote once that message is gone', async () => {
    const { messageId: asked } = server.userSends({ from: ada, text: 'question' });
    const route = { ...dm, replyTo: messageId(String(asked)) };
    await send(text('first'), route);
    server.people.deletes(ada.id, asked);
    await send(text('second'), route);
    expect(server.botMessages(ada.id).map(({ replyTo }) => replyTo)).toEqual([asked, undefined]);
  });
});

describe('typing', () => {
  it("shows typing in a forum's General topic and asks once whether the chat is a forum", async () => {
    const { chat } = server.world.addSupergroup('Forum', { isForum: true });
    for (let count = 0; count < 3; count += 1) await adapter.typing.show(routeTo(server, chat.id), forever);
    expect(server.typing.map(({ threadId: where }) => where)).toEqual([1, 1, 1]);
    expect(methods('getChat')).toHaveLength(1);
  });

  it('shows typing without a topic in a plain chat, and with one once the group has topics', async () => {
    let now = Date.now();
    adapter = newAdapter(server, { clock: { ...hastyClock, now: () => now } });
    await adapter.identify(forever);
    const team = server.world.addSupergroup('Team');
    const shown = async () => {
      await adapter.typing.show(routeTo(server, team.chat.id), forever);
      return server.typing.at(-1)?.threadId;
    };
    expect(await shown()).toBeUndefined();
    team.chat = { ...team.chat, is_forum: true };
    now += 60_000;
    expect(await shown()).toBe(1);
    await adapter.typing.show(dm, forever);
    expect(server.typing.at(-1)?.threadId).toBeUndefined();
  });

  it('ignores failures of typing and refreshes it before it expires after 5 s', async () => {
    await server.goAway();
    await expect(adapter.typing.show(dm, forever)).resolves.toBeUndefined();
    expect(adapter.typing.refreshMs).toBeLessThan(5000);
  });
});

describe('drafts', () => {
  it('shows a draft with a Stop button that arrives as a stop event', async () => {
    const intake = new RecordingIntake();
    await adapter.start(intake);
    await server.waitFor(() => server.updates.isPolled);
    await adapter.preview.draft(
      dm,
      7,
      { text: 'so far', spans: [{ kind: 'bold', start: 0, length: 2 }] },
      forever,
    );
    expect(server.drafts).toMatchObject([{ chatId: ada.id, draftId: 7, text: 'so far', canStop: true }]);
    server.people.stopsDraft(ada.id);
    const envelope = await intake.waitFor(() => intake.events[0]);
    expect(envelope).toMatchObject({ event: { kind: 'stop' }, route: { conversation: String(ada.id) } });
  });

  it('shows drafts in private chats only', async () => {
    const { chat } = server.world.addSupergroup('Team');
    await adapter.preview.draft(routeTo(server, chat.id), 7, plainText('x'), forever);
    expect(methods('sendMessageDraft')).toEqual([]);
  });

  it('pauses drafts for as long as a 429 asks, so that the answer is not delayed', async () => {
    let now = 1_000_000;
    const clock: Clock = { ...hastyClock, now: () => now };
    adapter = newAdapter(server, { clock });
    await adapter.identify(forever);
    server.fault(
      {
        kind: 'refuse',
        code: 429,
        description: 'Too Many Requests: retry after 5',
        parameters: { retry_after: 5 },
      },
      { method: 'sendMessageDraft' },
    );
    const draft = () => adapter.preview.draft(dm, 7, plainText('x'), forever);
    await draft();
    await draft();
    expect(methods('sendMessageDraft')).toHaveLength(1);
    expect((await send(text('the answer'))).kind).toBe('sent');
    now += 5000;
    await draft();
    expect(methods('sendMessageDraft')).toHaveLength(2);
  });
});

describe('reactions', () => {
  it('sets, replaces and clears a reaction', async () => {
    const { messageId: number } = server.userSends({ from: ada, text: 'hi' });
    const reactionNow = () => server.messages(ada.id).find((one) => one.messageId === number)?.botReaction;
    for (const [emoji, shown] of [
      ['👀', '👀'],
      ['⚠️', '😢'],
      ['', undefined],
    ] as const) {
      const result = await send({ kind: 'reaction', messageId: messageId(String(number)), emoji });
      expect(result.kind).toBe('sent');
      expect(reactionNow()).toBe(shown);
    }
    const refused = await send({ kind: 'reaction', messageId: messageId(String(number)), emoji: '🧀' });
    expect(refused).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
  });
});

describe('files', () => {
  let folder: string;
  beforeEach(async () => {
    folder = aFolder();
  });

  const bytesOf = async (stream: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return Buffer.concat(chunks);
  };

  it.each([
    ['image/png', 'sendPhoto'],
    ['application/pdf', 'sendDocument'],
  ])('sends a file of type %s byte for byte by %s, with a caption', async (mimeType, method) => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => index % 251));
    const path = join(folder, 'a.bin');
    await writeFile(path, bytes);
    const caption = { text: 'look here', spans: [{ kind: 'bold', start: 0, length: 4 }] } as const;
    const result = await send({ kind: 'media', path, mimeType, name: 'a "b"; c.bin', caption });
    const [shown] = server.botMessages(ada.id);
    expect(result).toEqual({ kind: 'sent', receipts: [String(shown?.messageId)] });
    expect(methods(method)).toHaveLength(1);
    expect(shown).toMatchObject({ text: 'look here', entities: [{ type: 'bold', offset: 0, length: 4 }] });
    expect((await bytesOf(shown?.file?.bytes() ?? [])).equals(bytes)).toBe(true);
  });

  it.each(['PHOTO_INVALID_DIMENSIONS', 'IMAGE_PROCESS_FAILED'])(
    'sends a picture as a file if Telegram refuses it as a photo (%s)',
    async (why) => {
      const bytes = Buffer.alloc(70_000, 'a');
      const path = join(folder, 'tall.png');
      await writeFile(path, bytes);
      server.fault(
        { kind: 'refuse', code: 400, description: `Bad Request: ${why}` },
        { method: 'sendPhoto' },
      );
      const result = await send({ kind: 'media', path, mimeType: 'image/png', name: 'tall.png' });
      const [shown] = server.botMessages(ada.id);
      expect(result).toEqual({ kind: 'sent', receipts: [String(shown?.messageId)] });
      expect(shown?.file?.name).toBe('tall.png');
      expect((await bytesOf(shown?.file?.bytes() ?? [])).equals(bytes)).toBe(true);
    },
  );

  it('refuses a file that cannot be read without a call', async () => {
    for (const path of [join(folder, 'none'), folder]) {
      const result = await send({ kind: 'media', path, mimeType: 'image/png', name: 'none' });
      expect(result).toMatchObject({ kind: 'failed', failure: { kind: 'rejected' } });
    }
    expect(server.sent).toEqual([]);
  });

  it('fails only the upload if its file disappears before it is read', async () => {
    const config = telegramConfig.parse({ token: server.token, apiRoot: server.apiRoot });
    const { api, fileOf } = await connectBot(config, outboundFetch);
    const document = fileOf({ path: join(folder, 'gone'), name: 'a' }, forever);
    await expect(api.sendDocument({ chat_id: ada.id, document }, forever)).rejects.toThrow();
    expect(server.sent).toEqual([]);
  });
});

describe('attachments', () => {
  const refOf = (id: string): AttachmentRef => ({ ref: id, kind: 'file' });
  const drain = async (ref: AttachmentRef, maxBytes: number) => {
    let size = 0;
    for await (const chunk of adapter.media.fetch(ref, maxBytes, forever)) size += chunk.length;
    return size;
  };
  const aFile = (sizeBytes: number, chunks: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>) =>
    server.world.addFile({ name: 'f', mimeType: 'application/octet-stream', sizeBytes, bytes: chunks });

  it('streams an attachment byte for byte', async () => {
    const file = server.world.addFile({ name: 'f', mimeType: 'a/b', bytes: new Uint8Array(300_000).fill(7) });
    expect(await drain(refOf(file.id), 300_000)).toBe(300_000);
  });

  it('does not fetch an attachment that is declared too large', async () => {
    const file = aFile(5000, () => [new Uint8Array(5000)]);
    await expect(drain(refOf(file.id), 4999)).rejects.toMatchObject({ code: 'media_too_large' });
    await expect(drain({ ...refOf(file.id), sizeBytes: 1e9 }, 4999)).rejects.toMatchObject({
      code: 'media_too_large',
    });
    expect(methods('getFile')).toHaveLength(1);
  });

  it('stops downloading an attachment that exceeds its declared size at the limit', async () => {
    let sent = 0;
    const endless = function* () {
      for (;;) {
        sent += 65_536;
        yield new Uint8Array(65_536);
      }
    };
    const file = aFile(100, endless);
    await expect(drain(refOf(file.id), 200_000)).rejects.toMatchObject({ code: 'media_too_large' });
    expect(sent).toBeLessThan(20_000_000);
  });

  it("treats attachments above the Bot API's 20 MB as too large and unknown ones as unavailable", async () => {
    const file = aFile(21 * 1024 * 1024, () => []);
    await expect(drain(refOf(file.id), 1e9)).rejects.toMatchObject({ code: 'media_too_large' });
    await expect(drain(refOf('nonsense'), 1e9)).rejects.toMatchObject({ code: 'media_unavailable' });
  });

  it('says how long to wait for an attachment if Telegram asks for a wait or is unreachable', async () => {
    const file = server.world.addFile({ name: 'f', mimeType: 'a/b', bytes: new Uint8Array(10) });
    const description = 'Too Many Requests: retry after 3';
    const flood = { kind: 'refuse', code: 429, description, parameters: { retry_after: 3 } } as const;
    server.fault(flood, { method: 'getFile' });
    const unavailable = (afterMs: number) => ({
      code: 'media_unavailable',
      retry: { kind: 'later', afterMs },
    });
    await expect(drain(refOf(file.id), 1000)).rejects.toMatchObject(unavailable(3000));
    await server.goAway();
    await expect(drain(refOf(file.id), 1000)).rejects.toMatchObject(unavailable(2000));
  });

  it("keeps the address, which contains the token, out of a failed download's error", async () => {
    const file = server.world.addFile({ name: 'f', mimeType: 'a/b', bytes: new Uint8Array(10) });
    server.world.files.set(file.id, { ...file, path: '../gone' });
    const failure: unknown = await drain(refOf(file.id), 1000).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'media_unavailable' });
    expect(String(failure)).not.toContain(server.token.split(':')[1]);
  });
});

describe('commands', () => {
  const commands = [
    { name: 'stop', description: 'Stop the run' },
    { name: 'help', description: 'What I can do' },
  ];

  it('registers the list of commands exactly as given', async () => {
    await adapter.commands.register(commands, forever);
    await adapter.commands.register(commands.slice(1), forever);
    expect(server.platform.commands).toEqual([{ command: 'help', description: 'What I can do' }]);
  });

  it('says how long to wait if the registration of commands is answered 429', async () => {
    server.fault(
      {
        kind: 'refuse',
        code: 429,
        description: 'Too Many Requests: retry after 490',
        parameters: { retry_after: 490 },
      },
      { method: 'setMyCommands' },
    );
    await expect(adapter.commands.register(commands, forever)).rejects.toMatchObject({
      code: 'channel_unavailable',
      retry: { kind: 'later', afterMs: 490_000 },
    });
  });
});

describe('logs', () => {
  it('logs neither the token nor any text, whatever fails', async () => {
    const { log, lines } = recordingLog();
    adapter = newAdapter(server, { log });
    await adapter.identify(forever);
    const intake = new RecordingIntake();
    await adapter.start(intake);
    for (const kind of ['cut', 'drop-answer'] as const) {
      server.fault({ kind }, { method: 'sendMessage' });
      await send(text('the private text'));
      server.fault({ kind }, { method: 'getUpdates' });
    }
    server.people.blocks(ada);
    await send(text('the private text'));
    await adapter.typing.show(dm, forever);
    await intake.waitFor(() => intake.events.some(({ event }) => event.kind === 'membership'));
    expect(lines.length).toBeGreaterThan(4);
    expect(lines.join('\n')).not.toContain('private text');
    expect(lines.join('\n')).not.toContain(server.token.split(':')[1]);
  });
});
