import { describe, expect, it } from 'vitest';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { botOf } from '../../../channels/telegram/ids.ts';
import { readBatch, readUpdate } from '../../../channels/telegram/inbound.ts';

const bot = botOf({ id: 700, username: 'ParleyBot' });
const ada = { id: 501, is_bot: false, first_name: 'Ada', last_name: 'L', username: 'ada_l' };
const dm = { id: 501, type: 'private', first_name: 'Ada' };
const group = { id: -1001, type: 'supergroup', title: 'Plans' };
const receivedAt = 1_800_000_000_000;

const aMessage = (fields: object = {}) => ({
  message_id: 9,
  date: 1_750_000_000,
  chat: dm,
  from: ada,
  text: 'hi',
  ...fields,
});
const read = (kind: string, body: unknown): InboundEnvelope => {
  const [envelope] = readUpdate({ update_id: 33, [kind]: body }, bot, receivedAt);
  if (envelope === undefined) throw new Error('nothing was read');
  return envelope;
};
const readMessage = (fields: object) => read('message', aMessage(fields));
const contentOf = (fields: object) => {
  const { event } = readMessage(fields);
  if (event.kind !== 'message') throw new Error(`read as ${event.kind}`);
  return event;
};
const inGroup = (text: string, entities: readonly object[], fields: object = {}) =>
  contentOf({ chat: group, text, entities, ...fields });

describe('a message', () => {
  it("turns a message into an envelope with an immutable route, the sender's id and the time in ms", () => {
    expect(readMessage({})).toEqual({
      eventKey: 'message:501:9',
      sentAt: 1_750_000_000_000,
      receivedAt: 1_750_000_000_000,
      route: { channel: 'telegram', account: '700', conversation: '501', replyTo: '9' },
      chat: { kind: 'dm' },
      sender: { id: '501', name: 'Ada L', isBot: false, isSelf: false },
      event: {
        kind: 'message',
        messageId: '9',
        text: 'hi',
        provenance: 'typed',
        attachments: [],
        mentionsBot: false,
        repliesToBot: false,
      },
    });
  });

  it('puts the chat into the event key, because each supergroup numbers its messages separately', () => {
    expect(readMessage({ chat: group }).eventKey).not.toBe(
      readMessage({ chat: { ...group, id: -1002 } }).eventKey,
    );
  });

  it("marks a message that the bot sent as the bot's own", () => {
    expect(readMessage({ from: { id: 700, is_bot: true, first_name: 'P' } }).sender).toMatchObject({
      isSelf: true,
      isBot: true,
    });
  });

  it('marks a message that fills the length limit as possibly continued', () => {
    expect(contentOf({ text: 'x'.repeat(4096) }).mayContinue).toBe(true);
    expect(contentOf({ text: 'x'.repeat(3999) }).mayContinue).toBeUndefined();
  });

  it('replaces lone surrogates and NUL characters in the text', () => {
    expect(contentOf({ text: 'a\ud83d b\u0000c' }).text).toBe('a\ufffd b\ufffdc');
  });

  it('gives the author of a forwarded message as a label only', () => {
    const origins = [
      [{ type: 'user', sender_user: ada }, 'Ada L'],
      [{ type: 'hidden_user', sender_user_name: 'Owner' }, 'Owner'],
      [{ type: 'channel', chat: { id: -1003, type: 'channel', title: 'News' }, message_id: 4 }, 'News'],
      [{ type: 'chat', sender_chat: group }, 'Plans'],
    ] as const;
    for (const [forward_origin, name] of origins) {
      const envelope = readMessage({ forward_origin });
      expect(envelope.event).toMatchObject({ kind: 'message', forwardedFrom: name });
      expect(envelope.sender.id).toBe('501');
    }
  });

  it('quotes the message that it answers, preferably the selected passage', () => {
    const reply_to_message = aMessage({ message_id: 4, text: 'the whole of it' });
    expect(contentOf({ reply_to_message }).quote).toEqual({
      messageId: '4',
      author: 'Ada L',
      text: 'the whole of it',
    });
    expect(contentOf({ reply_to_message, quote: { text: 'of it', position: 10 } }).quote?.text).toBe('of it');
  });

  it('joins an album by its id and keeps the caption on its message', () => {
    const photo = [{ file_id: 'small' }, { file_id: 'large', file_size: 90_000 }];
    const { message_id, date, chat, from } = aMessage();
    const first = read('message', {
      message_id,
      date,
      chat,
      from,
      photo,
      caption: 'two',
      media_group_id: '77',
    });
    expect(first.event).toMatchObject({
      text: 'two',
      album: '77',
      attachments: [{ ref: 'large', kind: 'image', mimeType: 'image/jpeg', sizeBytes: 90_000 }],
    });
    const second = read('message', { message_id: 10, date, chat, from, photo, media_group_id: '77' });
    expect(second.event).toMatchObject({ text: '', album: '77' });
    expect(second.eventKey).not.toBe(first.eventKey);
  });

  it.each([
    ['voice', { voice: { file_id: 'f', duration: 2, mime_type: 'audio/ogg' } }, 'voice'],
    ['audio', { audio: { file_id: 'f', duration: 2, file_name: 'a.mp3' } }, 'audio'],
    ['video', { video: { file_id: 'f' } }, 'video'],
    ['video note', { video_note: { file_id: 'f' } }, 'video'],
    ['document', { document: { file_id: 'f', file_name: 'a.pdf', mime_type: 'application/pdf' } }, 'file'],
    ['image sent as a document', { document: { file_id: 'f', mime_type: 'image/png' } }, 'image'],
    [
      'animation, once although it comes twice',
      { animation: { file_id: 'f' }, document: { file_id: 'f' } },
      'video',
    ],
    ['still sticker', { sticker: { file_id: 'f', emoji: '😀' } }, 'image'],
  ])('carries a %s as an attachment', (_, media, kind) => {
    expect(contentOf({ text: undefined, ...media }).attachments).toMatchObject([{ ref: 'f', kind }]);
  });

  it("describes a location in one line that is not part of the sender's text", () => {
    const location = { latitude: 52.5, longitude: 13.4 };
    const lines = (fields: object) => contentOf({ text: undefined, ...fields });
    expect(lines({ location })).toMatchObject({ text: '', described: ['[Location: 52.5, 13.4]'] });
    const venue = { location, title: 'Café', address: 'Main St 1' };
    expect(lines({ location, venue }).described).toEqual(['[Place: Café; Main St 1; 52.5, 13.4]']);
  });
});

describe('mentions', () => {
  const entity = (type: string, text: string, part: string) => ({
    type,
    offset: text.indexOf(part),
    length: part.length,
  });

  it("compares the bot's name in a mention without regard to case", () => {
    const text = '👋 hey @PARLEYbot, look';
    expect(inGroup(text, [entity('mention', text, '@PARLEYbot')]).mentionsBot).toBe(true);
  });

  it('does not count a mention of another or a longer name', () => {
    for (const name of ['@ParleyBot2', '@Parley', '@ada_l']) {
      expect(inGroup(`hey ${name}`, [entity('mention', `hey ${name}`, name)]).mentionsBot).toBe(false);
    }
  });

  it('counts a mention without an entity as a word of its own, but not in code, links or addresses', () => {
    expect(inGroup('@ParleyBot look', []).mentionsBot).toBe(true);
    expect(inGroup('so, @parleybot: look', [{ type: 'bold', offset: 0, length: 2 }]).mentionsBot).toBe(true);
    for (const text of ['see t.me/@ParleyBot', 'mail a@ParleyBot', '@ParleyBot2', 'x@@ParleyBot'])
      expect(inGroup(text, []).mentionsBot).toBe(false);
    for (const type of ['code', 'pre', 'text_link', 'url']) {
      const text = 'see @ParleyBot';
      expect(inGroup(text, [entity(type, text, '@ParleyBot')]).mentionsBot).toBe(false);
    }
  });

  it("recognizes a mention by display name by the user's id", () => {
    const text = 'Parley, look';
    const marked = (id: number) => ({ ...entity('text_mention', text, 'Parley'), user: { ...ada, id } });
    expect(inGroup(text, [marked(700)]).mentionsBot).toBe(true);
    expect(inGroup(text, [marked(701)]).mentionsBot).toBe(false);
  });

  it('counts a mention in a caption', () => {
    const caption = 'look @parleybot';
    const content = contentOf({
      chat: group,
      text: undefined,
      photo: [{ file_id: 'f' }],
      caption,
      caption_entities: [entity('mention', caption, '@parleybot')],
    });
    expect(content.mentionsBot).toBe(true);
  });

  it('counts a command as a mention only if it names this bot', () => {
    const marked = (text: string) => inGroup(text, [{ type: 'bot_command', offset: 0, length: text.length }]);
    expect(marked('/stop@parleybot').mentionsBot).toBe(true);
    expect(marked('/stop@otherbot').mentionsBot).toBe(false);
    expect(marked('/stop').mentionsBot).toBe(false);
  });

  it('survives entities that point beyond the text', () => {
    expect(inGroup('short', [{ type: 'mention', offset: 900, length: 9 }]).mentionsBot).toBe(false);
  });
});

describe('replies', () => {
  const byBot = { id: 700, is_bot: true, first_name: 'Parley' };

  it("marks a reply to the bot's message", () => {
    expect(inGroup('yes', [], { reply_to_message: aMessage({ from: byBot }) }).repliesToBot).toBe(true);
    expect(inGroup('yes', [], { reply_to_message: aMessage() }).repliesToBot).toBe(false);
  });

  it('does not count a message in a topic that the bot opened as a reply to the bot', () => {
    const root = {
      message_id: 5,
      date: 1,
      chat: group,
      from: byBot,
      forum_topic_created: { name: 'T', icon_color: 1 },
    };
    const content = inGroup('hello', [], {
      reply_to_message: root,
      message_thread_id: 5,
      is_topic_message: true,
    });
    expect(content.repliesToBot).toBe(false);
    expect(content.quote).toBeUndefined();
  });
});

describe('threads', () => {
  it('puts the topic of a message into the route as its thread', () => {
    const { route } = readMessage({ chat: group, message_thread_id: 5, is_topic_message: true });
    expect(route).toMatchObject({ conversation: '-1001', thread: '5' });
  });

  it('takes no thread from a plain chain of replies, whose id Telegram would refuse', () => {
    expect(readMessage({ chat: group, message_thread_id: 5 }).route.thread).toBeUndefined();
  });

  it('has no thread in the General topic', () => {
    expect(readMessage({ chat: { ...group, is_forum: true } }).route.thread).toBeUndefined();
  });

  it('has a thread in a private chat with topics', () => {
    expect(readMessage({ message_thread_id: 8, is_topic_message: true }).route.thread).toBe('8');
  });
});

describe('senders', () => {
  it('treats anonymous group admins as administrators under the id of the group', () => {
    const from = { id: 1087968824, is_bot: true, first_name: 'Group', username: 'GroupAnonymousBot' };
    const { sender } = readMessage({ chat: group, from, sender_chat: group, author_signature: 'boss' });
    expect(sender).toEqual({
      id: 'chat:-1001',
      name: 'Plans (boss)',
      isBot: false,
      isSelf: false,
      isAdmin: true,
    });
  });

  it('treats somebody who writes as a channel as that channel and not as an administrator', () => {
    const channel = { id: -1009, type: 'channel', title: 'News' };
    const from = { id: 136817688, is_bot: true, first_name: 'Channel', username: 'Channel_Bot' };
    const { sender } = readMessage({ chat: group, from, sender_chat: channel });
    expect(sender).toMatchObject({ id: 'chat:-1009', name: 'News' });
    expect(sender.isAdmin).toBeUndefined();
  });

  it('identifies senders by id, whatever name they use', () => {
    const { sender } = readMessage({ from: { ...ada, id: 666, first_name: '501', username: 'owner' } });
    expect(sender.id).toBe('666');
  });
});

describe('edits', () => {
  it('reads an edit as the full new text under an event key of its own', () => {
    const envelope = read('edited_message', aMessage({ text: 'better', edit_date: 1_750_000_060 }));
    expect(envelope).toMatchObject({
      sentAt: 1_750_000_060_000,
      event: { kind: 'edit', messageId: '9', text: 'better' },
    });
    expect(envelope.eventKey).not.toBe(readMessage({}).eventKey);
  });

  it('tells edits within the same second apart by their text and files', () => {
    const key = (text: string) => read('edited_message', aMessage({ text, edit_date: 7 })).eventKey;
    expect(key('one')).not.toBe(key('two'));
    expect(key('one')).toBe(key('one'));
    const photo = (id: string) => [{ file_id: `${id}-now`, file_unique_id: id }];
    const ofPhoto = (id: string, ref = '') => {
      const sizes = photo(id).map((size) => ({ ...size, file_id: size.file_id + ref }));
      return read('edited_message', aMessage({ text: undefined, photo: sizes, edit_date: 7 })).eventKey;
    };
    expect(ofPhoto('a')).not.toBe(ofPhoto('b'));
    // A file's reference may change; the file doesn't.
    expect(ofPhoto('a')).toBe(ofPhoto('a', 'later'));
  });

  it('reads an edit of a live location only once it has stopped moving', () => {
    const at = (live?: object) =>
      aMessage({ text: undefined, location: { latitude: 1, longitude: 2, ...live } });
    const moving = at({ live_period: 900, heading: 90 });
    expect(read('edited_message', moving).event).toMatchObject({
      kind: 'unsupported',
      name: expect.stringMatching(/^live_location: /),
    });
    const [live, still] = ['[Live location: 1, 2]', '[Location: 1, 2]'];
    expect(read('message', moving).event).toMatchObject({ kind: 'message', described: [live] });
    expect(read('edited_message', at()).event).toMatchObject({ kind: 'edit', described: [still] });
  });

  it('never drops words or files of an edit that are present but unreadable', () => {
    const edit = (fields: object) => read('edited_message', aMessage({ text: undefined, ...fields })).event;
    expect(edit({ photo: [{ width: 9 }], caption: 'new' })).not.toHaveProperty('attachments');
    expect(edit({ caption: 'new' })).toMatchObject({ text: 'new', attachments: [] });
    expect(edit({ photo: [{ file_id: 'f' }], caption: {} })).not.toHaveProperty('attachments');
    expect(edit({ photo: [{ file_id: 'f' }] })).toMatchObject({ text: '', attachments: [{ ref: 'f' }] });
  });

  it('reads an edited caption as the new text', () => {
    const body = aMessage({ text: undefined, caption: 'new', photo: [{ file_id: 'f' }], edit_date: 7 });
    expect(read('edited_message', body).event).toMatchObject({ kind: 'edit', text: 'new' });
  });
});

describe('other events', () => {
  it("reads a button press with its data and the button's message", () => {
    const message = { message_id: 12, date: 0, chat: group, message_thread_id: 5, is_topic_message: true };
    const envelope = read('callback_query', {
      id: '4382',
      from: ada,
      message,
      chat_instance: '1',
      data: 'yes:1',
    });
    expect(envelope).toMatchObject({
      eventKey: 'button:4382',
      route: { conversation: '-1001', thread: '5' },
      sender: { id: '501' },
      event: { kind: 'button', messageId: '12', data: 'yes:1' },
    });
  });

  it('reads a changed reaction as one removed and one added, each with its own key', () => {
    const emoji = (one: string) => [{ type: 'emoji', emoji: one }];
    const body = {
      chat: group,
      message_id: 4,
      user: ada,
      date: 99,
      old_reaction: emoji('👍'),
      new_reaction: emoji('🔥'),
    };
    const envelopes = readUpdate({ update_id: 1, message_reaction: body }, bot, receivedAt);
    expect(envelopes.map(({ event }) => event)).toEqual([
      { kind: 'reaction', messageId: '4', emoji: '👍', isRemoved: true },
      { kind: 'reaction', messageId: '4', emoji: '🔥', isRemoved: false },
    ]);
    expect(new Set(envelopes.map(({ eventKey }) => eventKey)).size).toBe(2);
  });

  it('reads setting, removing and setting a reaction again within a second as three events', () => {
    const on = [{ type: 'emoji', emoji: '👍' }];
    const at = (id: number, old_reaction: object[], new_reaction: object[]) => {
      const body = { chat: dm, message_id: 4, user: ada, date: 99, old_reaction, new_reaction };
      return readUpdate({ update_id: id, message_reaction: body }, bot, receivedAt)[0]?.eventKey;
    };
    const keys = () => [at(1, [], on), at(2, on, []), at(3, [], on)];
    expect(new Set([...keys(), ...keys()]).size).toBe(3);
  });

  it('reads blocking, removal and return of the bot as membership', () => {
    const body = (status: string, chat: object = dm, more: object = {}) => ({
      chat,
      from: ada,
      date: 5,
      old_chat_member: { user: { id: 700 }, status: 'member' },
      new_chat_member: { user: { id: 700 }, status, ...more },
    });
    const isMember = (...args: Parameters<typeof body>) => read('my_chat_member', body(...args)).event;
    expect(isMember('kicked')).toEqual({ kind: 'membership', isMember: false });
    expect(isMember('left', group)).toEqual({ kind: 'membership', isMember: false });
    expect(isMember('member', group)).toEqual({ kind: 'membership', isMember: true });
    expect(isMember('restricted', group, { is_member: true })).toEqual({
      kind: 'membership',
      isMember: true,
    });
    expect(isMember('restricted', group, { is_member: false })).toEqual({
      kind: 'membership',
      isMember: false,
    });
  });

  it('reads the Stop button of a draft as a stop in its topic', () => {
    const envelope = read('stopped_message_generation', { chat: dm, draft_id: 17, message_thread_id: 8 });
    expect(envelope).toMatchObject({
      route: { conversation: '501', thread: '8' },
      sender: { id: '501' },
      event: { kind: 'stop' },
    });
  });

  it("reads a group's migration to a supergroup as one event from either service message", () => {
    const old = { id: -55, type: 'group', title: 'Plans' };
    const left = read('message', { message_id: 1, date: 5, chat: old, from: ada, migrate_to_chat_id: -1001 });
    const right = read('message', {
      message_id: 2,
      date: 5,
      chat: group,
      from: ada,
      migrate_from_chat_id: -55,
    });
    expect(left).toMatchObject({ route: { conversation: '-55' }, event: { kind: 'migrated', to: '-1001' } });
    expect(right).toMatchObject({ route: { conversation: '-55' }, event: { kind: 'migrated', to: '-1001' } });
    expect(left.eventKey).toBe(right.eventKey);
  });
});

describe('unsupported updates', () => {
  const base = { message_id: 3, date: 5, chat: group, from: ada };
  it.each([
    ['message', { ...base, new_chat_members: [ada], new_chat_member: ada }, 'new_chat_members'],
    ['message', { ...base, left_chat_member: ada }, 'left_chat_member'],
    ['message', { ...base, pinned_message: base }, 'pinned_message'],
    ['message', base, 'message'],
    ['message', { ...base, forum_topic_created: { name: 'T', icon_color: 1 } }, 'forum_topic_created'],
    ['message', { ...base, message_id: 0, text: 'psst', receiver_user: ada }, 'ephemeral_message'],
    ['message', { ...base, chat: { ...group, is_direct_messages: true }, text: 'x' }, 'direct_messages'],
    ['channel_post', { ...base, chat: { ...group, type: 'channel' }, text: 'x' }, 'channel_post'],
    ['edited_channel_post', { ...base, text: 'x', edit_date: 6 }, 'edited_channel_post'],
    ['business_message', { ...base, text: 'x' }, 'business_message'],
    ['guest_message', { ...base, text: 'x' }, 'guest_message'],
    ['poll', { id: '1', question: '?' }, 'poll'],
    ['poll_answer', { poll_id: '1', option_ids: [0] }, 'poll_answer'],
    ['inline_query', { id: '1', from: ada, query: 'q', offset: '' }, 'inline_query'],
    ['chat_member', { chat: group, from: ada }, 'chat_member'],
    ['chat_join_request', { chat: group, from: ada, date: 1 }, 'chat_join_request'],
    [
      'message_reaction_count',
      { chat: group, message_id: 1, date: 1, reactions: [] },
      'message_reaction_count',
    ],
    [
      'callback_query',
      { id: '1', from: ada, chat_instance: '1', inline_message_id: 'x', data: 'd' },
      'callback_query',
    ],
    ['an_update_kind_of_2031', { chat: group }, 'an_update_kind_of_2031'],
  ])('names the %s update as unsupported, with a reason: %#', (kind, body, name) => {
    const envelope = read(kind, body);
    // The name of what it is, and a reason that a person can read.
    const reason = expect.stringMatching(new RegExp(`^${name}: \\S+ `));
    expect(envelope.event).toMatchObject({ kind: 'unsupported', name: reason });
    expect(envelope.eventKey).not.toBe('');
  });

  it('gives two ephemeral messages, which share the id 0, different keys', () => {
    const body = { ...base, message_id: 0, text: 'psst', receiver_user: ada };
    const key = (update_id: number) => readUpdate({ update_id, message: body }, bot, receivedAt)[0]?.eventKey;
    expect(key(1)).not.toBe(key(2));
  });
});

describe('a batch', () => {
  const good = (update_id: number) => ({ update_id, message: aMessage({ message_id: update_id }) });

  it("takes the next offset from a batch's highest id, in whatever order it arrived", () => {
    const batch = readBatch([good(12), good(10), good(11)], bot, receivedAt);
    expect(batch).toMatchObject({ nextOffset: 13 });
    expect(batch.events).toHaveLength(3);
  });

  it.each([
    ['a message without a chat', { update_id: 5, message: { message_id: 1, date: 1 } }],
    ['a fractional id', { update_id: 5, message: aMessage({ message_id: 1.5 }) }],
    [
      'a prototype key',
      JSON.parse('{"update_id":5,"message":{"__proto__":{"isAdmin":true},"message_id":1}}'),
    ],
    ['a constructor key', { update_id: 5, message: aMessage({ constructor: { prototype: 1 } }) }],
    ['null', { update_id: 5, message: null }],
    ['nesting without end', { update_id: 5, message: JSON.parse(`${'['.repeat(3000)}${']'.repeat(3000)}`) }],
  ])('stores %s as unreadable and continues after it', (_, bad) => {
    const batch = readBatch([good(4), bad, good(6)], bot, receivedAt);
    expect(batch.events.map(({ eventKey }) => eventKey)).toEqual(['message:501:4', 'message:501:6']);
    expect(batch.unreadable).toMatchObject([{ eventKey: 'unreadable:5' }]);
    expect(batch.unreadable[0]?.raw.length).toBeLessThanOrEqual(16_384);
    expect(batch.nextOffset).toBe(7);
  });

  it('stores a batch without any valid update id and moves no offset', () => {
    const batch = readBatch([{ message: aMessage() }, 'nonsense', null], bot, receivedAt);
    expect(batch).toMatchObject({ events: [], nextOffset: undefined });
    expect(new Set(batch.unreadable.map(({ eventKey }) => eventKey)).size).toBe(3);
  });

  it('reads an update of a known kind that has an unknown field', () => {
    const [envelope] = readUpdate({ update_id: 1, new_field: 1, message: aMessage() }, bot, receivedAt);
    expect(envelope?.event.kind).toBe('message');
  });
});
