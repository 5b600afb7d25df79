/** The test server must refuse what the platform refuses, or the tests that rely on it prove nothing. */
import { Api, GrammyError } from 'grammy/web';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTelegramServer, type TelegramServer, type TelegramServerOptions } from './server.ts';
import type { TgUser } from './types.ts';

const ada: TgUser = { id: 501, is_bot: false, first_name: 'Ada', username: 'ada_l' };
let server: TelegramServer;
let api: Api;
let now = 1_800_000_000_000;

const begin = async (options: TelegramServerOptions = {}) => {
  await server?.close();
  server = await startTelegramServer({ now: () => now, ...options });
  server.world.addPrivateChat(ada);
  api = new Api(server.token, { apiRoot: server.apiRoot });
};
beforeEach(() => begin());
afterEach(() => server.close());

/** Returns the code and text of a refusal. */
const refusal = async (call: Promise<unknown>) => {
  const error: unknown = await call.then(
    () => undefined,
    (fault: unknown) => fault,
  );
  if (!(error instanceof GrammyError)) throw new Error(`not refused by the platform: ${String(error)}`);
  return `${error.error_code} ${error.description}`;
};
/** Makes calls outside the typed API, as a faulty client would. */
const raw = async (method: string, body: object = {}, token = server.token) => {
  const response = await fetch(`${server.apiRoot}/bot${token}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, ...((await response.json()) as Record<string, unknown>) };
};
const says = (text: string) => server.userSends({ from: ada, text });

describe('calls', () => {
  it('refuses calls with a wrong token, an unknown method or no body', async () => {
    expect(await raw('getMe', {}, '1:wrong')).toMatchObject({
      status: 401,
      ok: false,
      description: 'Unauthorized',
    });
    expect(await raw('sendCake')).toMatchObject({ status: 404, description: 'Not Found: method not found' });
    expect(await raw('sendMessage')).toMatchObject({
      status: 400,
      description: 'Bad Request: chat_id is empty',
    });
    expect(await raw('sendMessage', { chat_id: 501 })).toMatchObject({
      description: 'Bad Request: message text is empty',
    });
  });

  it("refuses sends to chats that are unknown, blocked, left or upgraded, in Telegram's words", async () => {
    expect(await refusal(api.sendMessage(404, 'x'))).toBe('400 Bad Request: chat not found');
    server.people.blocks(ada);
    expect(await refusal(api.sendMessage(501, 'x'))).toBe('403 Forbidden: bot was blocked by the user');
    const { chat } = server.world.addSupergroup('Team');
    server.people.setsBotStatus(chat.id, ada, 'kicked');
    expect(await refusal(api.sendMessage(chat.id, 'x'))).toBe(
      '403 Forbidden: bot was kicked from the supergroup chat',
    );
    const old = server.world.addGroup('Old').chat.id;
    const grown = server.people.migrates(old);
    const error: unknown = await api.sendMessage(old, 'x').catch((fault: unknown) => fault);
    expect(error).toMatchObject({ error_code: 400, parameters: { migrate_to_chat_id: grown } });
  });

  it('counts a text after trimming it', async () => {
    expect((await api.sendMessage(501, `  ${'x'.repeat(4096)}\n`)).text).toHaveLength(4096);
    expect(await refusal(api.sendMessage(501, 'x'.repeat(4097)))).toBe(
      '400 Bad Request: message is too long',
    );
    expect(await refusal(api.sendMessage(501, ' \n '))).toBe('400 Bad Request: message text is empty');
  });

  it.each([
    ['beyond the text', 'abc', [{ type: 'bold', offset: 1, length: 9 }], /ends after the end of the text/],
    [
      'from inside a character',
      'a👋',
      [{ type: 'bold', offset: 2, length: 1 }],
      /begins in a middle of a UTF-16 symbol/,
    ],
    [
      'to inside a character',
      'a👋',
      [{ type: 'bold', offset: 0, length: 2 }],
      /ends in a middle of a UTF-16 symbol/,
    ],
    ['of an unknown type', 'abc', [{ type: 'blink', offset: 0, length: 1 }], /Unsupported type/],
    [
      'that overlap by half',
      'abcd',
      [
        { type: 'bold', offset: 0, length: 3 },
        { type: 'italic', offset: 2, length: 2 },
      ],
      /overlap/,
    ],
    [
      'around code',
      'abcd',
      [
        { type: 'bold', offset: 0, length: 4 },
        { type: 'code', offset: 1, length: 2 },
      ],
      /beside code/,
    ],
    [
      'quote in quote',
      'abcd',
      [
        { type: 'blockquote', offset: 0, length: 4 },
        { type: 'blockquote', offset: 1, length: 2 },
      ],
      /blockquote/,
    ],
    [
      'with no web address',
      'abcd',
      [{ type: 'text_link', offset: 0, length: 4, url: 'localhost' }],
      /Wrong HTTP URL/,
    ],
  ])('refuses entities %s', async (_, text, entities, wording) => {
    expect(await raw('sendMessage', { chat_id: 501, text, entities })).toMatchObject({
      status: 400,
      description: expect.stringMatching(wording),
    });
  });

  it('refuses a quote that is gone, or sends without it if asked', async () => {
    const reply = (allow: boolean) =>
      api.sendMessage(501, 'x', { reply_parameters: { message_id: 99, allow_sending_without_reply: allow } });
    expect(await refusal(reply(false))).toBe('400 Bad Request: message to be replied not found');
    expect((await reply(true)).reply_to_message).toBeUndefined();
  });

  it('accepts the General topic for typing and refuses it for sending', async () => {
    const { chat } = server.world.addSupergroup('Forum', { isForum: true });
    expect(await refusal(api.sendMessage(chat.id, 'x', { message_thread_id: 1 }))).toBe(
      '400 Bad Request: message thread not found',
    );
    expect(await refusal(api.sendMessage(chat.id, 'x', { message_thread_id: 77 }))).toContain(
      'message thread not found',
    );
    expect(await api.sendChatAction(chat.id, 'typing', { message_thread_id: 1 })).toBe(true);
  });

  it('edits and deletes only what Telegram allows', async () => {
    const { message_id: own } = await api.sendMessage(501, 'one');
    const foreign = says('mine').messageId;
    expect(await refusal(api.editMessageText(501, own, 'one'))).toContain('message is not modified');
    expect(await refusal(api.editMessageText(501, foreign, 'x'))).toBe(
      "400 Bad Request: message can't be edited",
    );
    expect(await refusal(api.editMessageText(501, 99, 'x'))).toBe(
      '400 Bad Request: message to edit not found',
    );
    await api.editMessageText(501, own, 'two');
    expect(server.botMessages(501)).toMatchObject([{ text: 'two', history: [{ text: 'one' }] }]);
    await api.deleteMessage(501, own);
    expect(await refusal(api.deleteMessage(501, own))).toBe('400 Bad Request: message to delete not found');
    expect(server.deletedMessages(501)).toMatchObject([{ text: 'two' }]);
    const { message_id: old } = await api.sendMessage(501, 'old');
    now += 49 * 3_600_000;
    expect(await refusal(api.deleteMessage(501, old))).toBe("400 Bad Request: message can't be deleted");
  });

  it('accepts drafts in private chats only, with an id other than 0, for 30 seconds', async () => {
    const { chat } = server.world.addSupergroup('Team');
    expect(await raw('sendMessageDraft', { chat_id: 501, draft_id: 0, text: 'x' })).toMatchObject({
      status: 400,
    });
    expect(await raw('sendMessageDraft', { chat_id: chat.id, draft_id: 1, text: 'x' })).toMatchObject({
      status: 400,
    });
    expect(
      await raw('sendMessageDraft', { chat_id: 501, draft_id: 1, text: '', can_stop: true }),
    ).toMatchObject({ ok: true });
    now += 31_000;
    expect(() => server.people.stopsDraft(501)).toThrow('no draft');
  });

  it("accepts only reactions from Telegram's list", async () => {
    const { messageId } = says('hi');
    expect(
      await raw('setMessageReaction', {
        chat_id: 501,
        message_id: messageId,
        reaction: [{ type: 'emoji', emoji: '⚠️' }],
      }),
    ).toMatchObject({ description: 'Bad Request: REACTION_INVALID' });
    expect(await api.setMessageReaction(501, messageId, [{ type: 'emoji', emoji: '👍' }])).toBe(true);
  });
});

describe('updates', () => {
  const texts = async (offset?: number) => {
    const updates = await api.getUpdates(offset === undefined ? {} : { offset });
    return updates.map((update) => update.message?.text);
  };

  it('sends only the kinds of updates asked for, from call to call', async () => {
    await api.getUpdates({ allowed_updates: ['callback_query'] });
    says('unasked');
    expect(await texts()).toEqual([]);
    await api.getUpdates({ allowed_updates: [] });
    says('asked');
    expect(await texts()).toEqual(['asked']);
  });
});
