import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { timeOf } from '../../../channels/discord/ids.ts';
import { readDispatch, readHistoric } from '../../../channels/discord/inbound.ts';
import { readRemoval } from '../../../channels/discord/reader.ts';
import { conversationId, peerId } from '../../../src/contracts/ids.ts';
import { check } from '../../replies/reply-generators.ts';
import {
  aDirectMessage,
  ada,
  adminRole,
  aGuild,
  aMessage,
  aScene,
  bob,
  bot,
  dm,
  forum,
  general,
  guildId,
  nextId,
  only,
  ownRole,
  thread,
} from './payloads.ts';

const asUser = { id: bot.id, username: 'parley', bot: true };
const mentionOfBot = { mentions: [asUser], content: `<@${bot.id}> hi` };

describe('a message', () => {
  it('reads a guild message with its channel, guild and author', () => {
    const { read } = aScene();
    const message = aMessage({ content: 'good morning' });
    const { envelope, messageId, place } = only(read('MESSAGE_CREATE', message));
    expect(envelope).toEqual({
      eventKey: `message:${message.id}`,
      sentAt: timeOf(message.id),
      receivedAt: timeOf(message.id),
      route: { channel: 'discord', account: bot.id, conversation: general, replyTo: message.id },
      chat: { kind: 'group', parent: guildId },
      sender: { id: ada.id, name: 'Ada', isBot: false, isSelf: false, isAdmin: false },
      event: {
        kind: 'message',
        messageId: message.id,
        text: 'good morning',
        provenance: 'typed',
        attachments: [],
        mentionsBot: false,
        repliesToBot: false,
      },
    });
    expect([messageId, place.id]).toEqual([message.id, general]);
  });

  it('assigns a message in a thread or forum post to the channel above it, with the thread in the route', () => {
    const { read } = aScene();
    const { envelope } = only(read('MESSAGE_CREATE', aMessage({ channel_id: thread })));
    expect(envelope.route).toMatchObject({ conversation: forum, thread });
    expect(envelope.chat).toEqual({ kind: 'group', parent: guildId });
  });

  it('treats a message without a guild as direct, whatever Discord says about its channel', () => {
    const { read } = aScene();
    const { envelope } = only(read('MESSAGE_CREATE', aDirectMessage()));
    expect(envelope.chat).toEqual({ kind: 'dm' });
    expect(envelope.route).toMatchObject({ conversation: dm });
    expect(envelope.sender).not.toHaveProperty('isAdmin');
  });

  it('holds a message of an unknown channel or thread until that is known', () => {
    const { read } = aScene();
    const channelId = nextId();
    expect(read('MESSAGE_CREATE', aMessage({ channel_id: channelId }))).toEqual({
      kind: 'unplaced',
      channelId,
    });
  });

  it("skips the bot's own message, up to which the history is known", () => {
    const { read } = aScene();
    const own = aMessage({ author: asUser });
    expect(read('MESSAGE_CREATE', own)).toMatchObject({ kind: 'own', messageId: own.id });
    const answer = aMessage({ author: asUser, webhook_id: bot.id, type: 20 });
    expect(read('MESSAGE_CREATE', answer)).toMatchObject({ kind: 'own' });
  });

  it('marks a message from another bot or a webhook as one', () => {
    const { read } = aScene();
    const other = { ...bob, bot: true };
    expect(only(read('MESSAGE_CREATE', aMessage({ author: other }))).envelope.sender.isBot).toBe(true);
    const hook = aMessage({ author: { id: nextId(), username: 'hook' }, webhook_id: nextId() });
    expect(only(read('MESSAGE_CREATE', hook)).envelope.sender.isBot).toBe(true);
  });

  it.each([
    ['the owner', { author: bob }, true],
    ['somebody who may manage the guild', { member: { roles: [adminRole] } }, true],
    ['somebody with another role', { member: { roles: [ownRole] } }, false],
    ['somebody with an unknown role', { member: { roles: ['1'] } }, false],
  ])("decides whether a message from %s is an administrator's", (_, over, isAdmin) => {
    const { read } = aScene();
    expect(only(read('MESSAGE_CREATE', aMessage(over))).envelope.sender.isAdmin).toBe(isAdmin);
  });

  it("claims no rank where Discord does not list the author's roles", () => {
    const { around, directory } = aScene();
    const place = directory.placeOf(general);
    if (place === undefined) throw new Error('the channel is not known');
    const { member: _, guild_id: __, ...old } = aMessage({ content: '/stop' });
    const { envelope } = only(readHistoric(old, place, around));
    expect(envelope.sender).not.toHaveProperty('isAdmin');
    expect(envelope.route.conversation).toBe(general);
  });

  it('records a message that Discord itself writes as unsupported', () => {
    const { read } = aScene();
    const joined = only(read('MESSAGE_CREATE', aMessage({ type: 7, content: '' })));
    expect(joined.envelope.event).toEqual({
      kind: 'unsupported',
      name: 'message-type-7: Discord’s note: somebody joined',
      messageId: joined.messageId,
    });
    expect(joined.messageId).toBeDefined();
  });
});

describe('addressing the bot', () => {
  const calls = (over: Readonly<Record<string, unknown>>) => {
    const { event } = only(aScene().read('MESSAGE_CREATE', aMessage(over))).envelope;
    if (event.kind !== 'message') throw new Error(`a ${event.kind}`);
    return [event.mentionsBot, event.repliesToBot];
  };
  const own = aMessage({ author: asUser, content: 'earlier' });

  it.each([
    ['a mention', mentionOfBot, [true, false]],
    ['a mention in the old form', { mentions: [asUser], content: `<@!${bot.id}>` }, [true, false]],
    ['a mention of the role that Discord made for the bot', { mention_roles: [ownRole] }, [true, false]],
    ['a mention of another role', { mention_roles: [adminRole] }, [false, false]],
    ['@everyone', { mention_everyone: true, content: '@everyone' }, [false, false]],
    ['a mention of somebody else', { mentions: [bob], content: `<@${bob.id}>` }, [false, false]],
    ['a reply', { type: 19, referenced_message: own }, [false, true]],
    ['a reply that pings', { type: 19, referenced_message: own, mentions: [asUser] }, [false, true]],
    ['a reply that mentions', { type: 19, referenced_message: own, ...mentionOfBot }, [true, true]],
    ['a reply to a person', { type: 19, referenced_message: aMessage() }, [false, false]],
    ['a reply to what was deleted', { type: 19, referenced_message: null }, [false, false]],
  ])('decides whether the bot is addressed by %s', (_, over, expected) =>
    expect(calls(over)).toEqual(expected),
  );

  const reference = { message_id: '1450000000000000009', channel_id: general, guild_id: guildId };
  const addressee = (over: Readonly<Record<string, unknown>>, author?: boolean) => {
    const scene = aScene();
    if (author !== undefined)
      scene.authors.set(reference.message_id, { id: peerId('1'), name: '', isBot: author, isSelf: author });
    const { event } = only(scene.read('MESSAGE_CREATE', aMessage(over))).envelope;
    return event.kind === 'message' ? [event.repliesToBot, event.repliesTo] : undefined;
  };

  it.each([
    [
      'to a message of the bot that was seen',
      { type: 19, message_reference: reference },
      true,
      [true, undefined],
    ],
    [
      'to a message of a person that was seen',
      { type: 19, message_reference: reference },
      false,
      [false, undefined],
    ],
    [
      'to an unknown message',
      { type: 19, message_reference: reference },
      undefined,
      [false, reference.message_id],
    ],
    ['without a type', { message_reference: { ...reference, guild_id: '' } }, true, [true, undefined]],
    ['to nothing', { type: 19, message_reference: { message_id: '' } }, undefined, [false, undefined]],
    ['that is forwarded', { message_reference: { ...reference, type: 1 } }, true, [false, undefined]],
    ['that is a crosspost', { flags: 2, message_reference: reference }, true, [false, undefined]],
    [
      'that points into another channel',
      { type: 19, message_reference: { ...reference, channel_id: forum } },
      true,
      [false, undefined],
    ],
  ])(
    'decides whether a reply %s addresses the bot, without the message itself',
    (_, over, author, expected) => expect(addressee(over, author)).toEqual(expected),
  );
});

describe('empty ids', () => {
  it('treats an empty id as absent', () => {
    const { read } = aScene();
    const empty = { guild_id: '', webhook_id: '', message_reference: { message_id: '', guild_id: '' } };
    const { envelope } = only(read('MESSAGE_CREATE', { ...aDirectMessage(), ...empty }));
    expect(envelope).toMatchObject({ chat: { kind: 'dm' }, sender: { id: ada.id, isBot: false } });
    expect(read('MESSAGE_CREATE', aMessage({ author: { ...ada, id: '' } })).kind).toBe('unreadable');
  });
});

describe('absurd numbers', () => {
  it('keeps a message with absurd numbers and ignores impossible dates', () => {
    const scene = aScene();
    const odd = {
      flags: 1e300,
      attachments: [{ id: nextId(), url: 'https://cdn.discordapp.com/x', size: -1 }],
    };
    const { envelope } = only(scene.read('MESSAGE_CREATE', aMessage({ ...odd, timestamp: '+275760-01-01' })));
    expect(envelope.sentAt).toBe(scene.around.receivedAt);
    // Odd values don't turn a post that nobody typed into a command either.
    expect(envelope.event).toMatchObject({ provenance: 'forwarded' });
    const far = only(scene.read('MESSAGE_CREATE', aMessage({ id: '18446744073709551615' })));
    expect(far.envelope.sentAt).toBeLessThanOrEqual(scene.around.receivedAt);
    expect(scene.read('MESSAGE_CREATE', aMessage({ id: '18446744073709551616' })).kind).toBe('unreadable');
  });
});

describe('the text of a message', () => {
  const contentOf = (over: Readonly<Record<string, unknown>>) => {
    const { event } = only(aScene().read('MESSAGE_CREATE', aMessage(over))).envelope;
    if (event.kind !== 'message') throw new Error(`a ${event.kind}`);
    return event;
  };

  it('replaces ids in the text with names', () => {
    const content = `<@${bot.id}> ask <@!${ada.id}> or <@&${adminRole}> in <#${general}> <:wave:123456789> </help:12345>`;
    const { text } = contentOf({
      content,
      mentions: [asUser, { ...ada, member: { nick: 'Lady L', roles: [] } }],
    });
    expect(text).toBe('@parley ask @Lady L or @Boss in #general :wave: /help');
  });

  it('leaves an id without a known name as it is', () => {
    const content = '<@999999999999999999> <@&888888888888888888> <#777777777777777777> <t:1:R> 1 < 2';
    expect(contentOf({ content }).text).toBe(content);
  });

  it('removes a mention of the bot before a command', () => {
    expect(contentOf({ ...mentionOfBot, content: `<@${bot.id}> /queue steer` }).text).toBe('/queue steer');
    expect(contentOf({ ...mentionOfBot, content: `<@${bot.id}> steer` }).text).toBe('@parley steer');
  });

  it('replaces NUL characters and lone surrogates', () => {
    expect(contentOf({ content: 'a\u0000b\ud83d' }).text).toBe('a\ufffdb\ufffd');
  });

  it('quotes the message that it answers', () => {
    const quoted = aMessage({ author: bob, content: 'the oven is hot' });
    expect(contentOf({ type: 19, referenced_message: quoted }).quote).toEqual({
      messageId: quoted.id,
      author: 'bob',
      text: 'the oven is hot',
    });
  });

  it('shows a forwarded message as forwarded, wherever it came from', () => {
    const snapshot = { message: { content: 'far away', attachments: [anAttachment()] } };
    const reference = { type: 1, message_id: nextId(), channel_id: general };
    const event = contentOf({ content: '', message_reference: reference, message_snapshots: [snapshot] });
    expect(event).toMatchObject({ text: 'far away', forwardedFrom: '#general' });
    expect(event.attachments).toHaveLength(1);
  });

  it('names stickers and polls', () => {
    const over = { content: 'look', sticker_items: [{ name: 'cat' }], poll: { question: { text: 'Tea?' } } };
    const { text, described } = contentOf(over);
    expect([text, described]).toEqual(['look', ['[Sticker] cat', '[Poll] Tea?']]);
  });

  it('carries the files of a message as attachments', () => {
    const over = { attachments: [anAttachment(), anAttachment({ content_type: undefined, filename: 'x' })] };
    const message = aMessage(over);
    expect(contentOf(message).attachments).toEqual([
      {
        ref: `${general}/${message.id}/1 https://cdn.example/a.png?ex=1`,
        fileId: '1',
        kind: 'image',
        name: 'a.png',
        mimeType: 'image/png',
        sizeBytes: 70,
      },
      {
        ref: `${general}/${message.id}/1 https://cdn.example/a.png?ex=1`,
        fileId: '1',
        kind: 'file',
        name: 'x',
        sizeBytes: 70,
      },
    ]);
    const voice = contentOf({ flags: 1 << 13, attachments: [anAttachment({ content_type: 'audio/ogg' })] });
    expect(voice.attachments[0]?.kind).toBe('voice');
  });
});

function anAttachment(over: Readonly<Record<string, unknown>> = {}) {
  return {
    id: '1',
    filename: 'a.png',
    size: 70,
    content_type: 'image/png',
    url: 'https://cdn.example/a.png?ex=1',
    ...over,
  };
}

describe('edits', () => {
  it('reads an edit as the whole new text with a separate key for each edit time', () => {
    const { read } = aScene();
    const message = aMessage({ content: 'second' });
    const at = (edited_timestamp: string) =>
      only(read('MESSAGE_UPDATE', { ...message, edited_timestamp })).envelope;
    const first = at('2026-11-20T10:00:01.000000+00:00');
    expect(first.event).toMatchObject({ kind: 'edit', messageId: message.id, text: 'second' });
    expect(first.sender.id).toBe(ada.id);
    expect(first.eventKey).not.toBe(at('2026-11-20T10:00:01.500000+00:00').eventKey);
    expect(first.eventKey).not.toBe(at('2026-11-20T10:00:01.000001+00:00').eventKey);
    expect(first.eventKey).toBe(at('2026-11-20T10:00:01.000000+00:00').eventKey);
  });

  it('does not read a link preview or a pin as an edit', () => {
    const { read } = aScene();
    const unfurled = { id: nextId(), channel_id: general, guild_id: guildId, embeds: [{ type: 'link' }] };
    expect(read('MESSAGE_UPDATE', unfurled)).toEqual({ kind: 'nothing' });
    expect(read('MESSAGE_UPDATE', aMessage({ pinned: true }))).toEqual({ kind: 'nothing' });
  });

  it("ignores an edit of the bot's own message", () => {
    const edited = aMessage({ author: asUser, edited_timestamp: '2026-11-20T10:00:01.000000+00:00' });
    expect(aScene().read('MESSAGE_UPDATE', edited)).toEqual({ kind: 'nothing' });
  });
});

describe('deletions', () => {
  const gone = (over: Readonly<Record<string, unknown>> = {}) => ({
    id: nextId(),
    channel_id: general,
    guild_id: guildId,
    ...over,
  });

  it('names the deleted message, and its author if known', () => {
    const { read, authors } = aScene();
    const data = gone();
    expect(only(read('MESSAGE_DELETE', data)).envelope).toMatchObject({
      eventKey: `delete:${data.id}`,
      event: { kind: 'delete', messageId: data.id },
      sender: { id: 'nobody' },
    });
    authors.set(data.id, { id: ada.id, name: 'Ada', isBot: false, isSelf: false } as never);
    expect(only(read('MESSAGE_DELETE', data)).envelope.sender.id).toBe(ada.id);
  });

  it("ignores the deletion of the bot's own message", () => {
    const { read, authors } = aScene();
    const data = gone();
    authors.set(data.id, { id: bot.id, name: 'parley', isBot: true, isSelf: true } as never);
    expect(read('MESSAGE_DELETE', data)).toEqual({ kind: 'nothing' });
  });

  it('reads a bulk deletion as one event for each message', () => {
    const { read } = aScene();
    const { id: _, ...where } = gone();
    const ids = [nextId(), nextId()];
    const reading = read('MESSAGE_DELETE_BULK', { ids, ...where });
    expect(reading.kind === 'events' && reading.events.map(({ event }) => event)).toEqual(
      ids.map((id) => ({ kind: 'delete', messageId: id, isVouched: true })),
    );
  });

  it('holds a deletion in a direct channel until it is known whose channel that is', () => {
    const { read, directory } = aScene();
    const data = { id: nextId(), channel_id: dm };
    expect(read('MESSAGE_DELETE', data)).toEqual({ kind: 'unplaced', channelId: dm });
    directory.learnChannel({ id: dm, type: 1, recipients: [ada] });
    expect(only(read('MESSAGE_DELETE', data)).envelope.sender.id).toBe(ada.id);
  });
});

describe('reactions', () => {
  const reaction = (over: Readonly<Record<string, unknown>> = {}) => ({
    user_id: ada.id,
    channel_id: general,
    guild_id: guildId,
    message_id: '1450000000000000009',
    emoji: { id: null, name: '👍' },
    member: { user: ada, nick: 'Lady L', roles: [adminRole] },
    ...over,
  });

  it("names a reaction's message, emoji and person", () => {
    const { envelope } = only(aScene().read('MESSAGE_REACTION_ADD', reaction()));
    expect(envelope.event).toEqual({
      kind: 'reaction',
      messageId: '1450000000000000009',
      emoji: '👍',
      isRemoved: false,
    });
    expect(envelope.sender).toEqual({
      id: ada.id,
      name: 'Lady L',
      isBot: false,
      isSelf: false,
      isAdmin: true,
    });
  });

  it('gives a redelivered reaction the same key, and a repeated one another', () => {
    const { read, people } = aScene();
    people.set(ada.id, ada);
    const { member: _, ...removed } = reaction();
    const keys = [
      only(read('MESSAGE_REACTION_ADD', reaction(), 7)),
      only(read('MESSAGE_REACTION_ADD', reaction(), 7)),
      only(read('MESSAGE_REACTION_REMOVE', removed, 8)),
      only(read('MESSAGE_REACTION_ADD', reaction(), 9)),
    ].map(({ envelope }) => envelope.eventKey);
    expect(keys[0]).toBe(keys[1]);
    expect(new Set(keys).size).toBe(3);
  });

  it("shows a guild's own emoji by its name", () => {
    const own = reaction({ emoji: { id: '123456789012345678', name: 'party' } });
    expect(only(aScene().read('MESSAGE_REACTION_ADD', own)).envelope.event).toMatchObject({
      emoji: ':party:',
    });
  });

  it("ignores the bot's own reaction", () => {
    expect(aScene().read('MESSAGE_REACTION_ADD', reaction({ user_id: bot.id }))).toEqual({ kind: 'nothing' });
  });
});

describe('interactions', () => {
  const interaction = (over: Readonly<Record<string, unknown>> = {}) => ({
    id: '1450000000000000777',
    application_id: bot.id,
    token: 'secret-token',
    type: 2,
    channel_id: general,
    guild_id: guildId,
    member: { user: ada, nick: null, roles: [], permissions: '32' },
    data: { id: '1', type: 1, name: 'queue', options: [{ name: 'text', type: 3, value: 'steer cap:5' }] },
    ...over,
  });

  it('reads a slash command as a message to the bot and answers the interaction', () => {
    const { envelope, messageId } = only(aScene().read('INTERACTION_CREATE', interaction()));
    expect(envelope).toMatchObject({
      eventKey: 'interaction:1450000000000000777',
      route: { conversation: general, replyTo: 'interaction-1450000000000000777' },
      sender: { id: ada.id, isAdmin: true },
      event: { kind: 'message', text: '/queue steer cap:5', mentionsBot: true },
    });
    // It isn't a message in the history.
    expect(messageId).toBeUndefined();
    expect(JSON.stringify(envelope)).not.toContain('secret-token');
  });

  it('reads the user of an interaction in a direct channel', () => {
    const { member: _, guild_id: __, ...direct } = interaction({ channel_id: dm, user: ada });
    const { envelope } = only(
      aScene().read('INTERACTION_CREATE', { ...direct, data: { name: 'status', type: 1 } }),
    );
    expect(envelope).toMatchObject({
      chat: { kind: 'dm' },
      sender: { id: ada.id },
      event: { text: '/status' },
    });
  });

  it('reads a pressed button with its message and its data', () => {
    const pressed = interaction({ type: 3, message: { id: '77' }, data: { custom_id: 'approve:1' } });
    expect(only(aScene().read('INTERACTION_CREATE', pressed)).envelope).toMatchObject({
      eventKey: 'button:1450000000000000777',
      event: { kind: 'button', messageId: '77', data: 'approve:1' },
    });
  });

  it('records any other kind of interaction as unsupported', () => {
    const modal = interaction({ type: 5, data: { custom_id: 'x' } });
    expect(only(aScene().read('INTERACTION_CREATE', modal)).envelope.event.kind).toBe('unsupported');
    const menu = interaction({ data: { type: 3, name: 'Translate', target_id: '1' } });
    expect(only(aScene().read('INTERACTION_CREATE', menu)).envelope.event.kind).toBe('unsupported');
  });
});

describe('other events', () => {
  it('reports its removal from a guild to every conversation that it knew there', () => {
    const { around } = aScene();
    const events = readRemoval([conversationId('1'), conversationId('2')], { guildId, s: 4 }, around);
    expect(events.map((one) => [one.route.conversation, one.event, one.chat.parent])).toEqual([
      ['1', { kind: 'membership', isMember: false }, guildId],
      ['2', { kind: 'membership', isMember: false }, guildId],
    ]);
    expect(new Set(events.map(({ eventKey }) => eventKey)).size).toBe(2);
  });

  it('knows where the bot may view channels and read their history', () => {
    const deny = (bits: bigint) => [{ id: guildId, type: 0, allow: '0', deny: String(bits) }];
    const channels = [
      { id: general, type: 0, name: 'general', permission_overwrites: deny(1n << 16n) },
      { id: forum, type: 15, name: 'ideas', permission_overwrites: deny(1n << 10n) },
    ];
    const { directory } = aScene(aGuild({ channels }));
    expect(directory.access(general)).toMatchObject({ canView: true, canReadHistory: false });
    expect(directory.access(thread)).toMatchObject({ canView: false, canReadHistory: true });
  });

  it.each([
    ['a value that is not an object', 7],
    ['a message without an author', aMessage({ author: null })],
    ['an invalid id', aMessage({ id: 'seven' })],
    ['a hostile key', JSON.parse('{"id":"1","channel_id":"2","__proto__":{"isAdmin":true}}')],
    ['endless nesting', JSON.parse(`${'{"a":'.repeat(100)}1${'}'.repeat(100)}`)],
  ])('keeps data that cannot be read raw: %s', (_, data) => {
    const reading = aScene().read('MESSAGE_CREATE', data);
    expect(reading.kind).toBe('unreadable');
    if (reading.kind !== 'unreadable') return;
    expect(reading.row.raw).not.toBe('');
    expect(reading.row.problem).not.toBe('');
  });

  it('never throws and never grants a rank, whatever arrives', () => {
    const events = fc.constantFrom(
      ...[
        'MESSAGE_CREATE',
        'MESSAGE_UPDATE',
        'MESSAGE_DELETE',
        'MESSAGE_DELETE_BULK',
        'MESSAGE_REACTION_ADD',
      ],
      ...['INTERACTION_CREATE', 'GUILD_CREATE', 'CHANNEL_UPDATE', 'THREAD_LIST_SYNC', 'NEW_THING'],
    );
    const { around, directory } = aScene();
    const honest = aMessage();
    const broken = fc.record({ key: fc.constantFrom(...Object.keys(honest)), value: fc.jsonValue() });
    const payloads = fc.oneof(
      fc.jsonValue(),
      broken.map(({ key, value }) => ({ ...honest, [key]: value })),
    );
    check(
      fc.property(events, payloads, (t, d) => {
        directory.apply(t, d);
        const reading = readDispatch({ t, d, s: 1 }, around);
        if (reading.kind !== 'events') return;
        for (const { sender } of reading.events)
          if (sender.id === ada.id) expect(sender.isAdmin).not.toBe(true);
      }),
      20_000,
    );
    expect(({} as Record<string, unknown>).isAdmin).toBeUndefined();
  });
});
