import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import type { InboundEnvelope, InboundEvent } from '#contracts/envelope.ts';
import { botOf } from '../../../channels/signal/ids.ts';
import { type Known, readFrames } from '../../../channels/signal/inbound.ts';
import { RecentMessages } from '../../../channels/signal/recent.ts';
import { type SignalServer, startSignalServer } from '../../platforms/signal/server.ts';
import type { Group, Person } from '../../platforms/signal/types.ts';
import { isLong } from '../../support/long-run.ts';

/** What people do on the local Signal server, read as the adapter reads it. None of it goes over HTTP. */
let server: SignalServer;
let ada: Person;
let bob: Person;
let team: Group;
let recent: RecentMessages;
let read: number;
const admins = new Map<string, ReadonlySet<string>>();

beforeEach(async () => {
  server = await startSignalServer({ now: () => 1_800_000_000_000 });
  ada = server.world.addPerson({ name: 'Ada', number: null });
  bob = server.world.addPerson({ name: 'Bob' });
  team = server.world.addGroup({ name: 'Team', members: [ada, bob, server.account] });
  recent = new RecentMessages();
  read = 0;
  admins.clear();
  await server.close();
});

const known = (): Known => ({
  bot: botOf({ aci: server.account.uuid, number: server.account.number, name: 'Parley' }),
  nameOf: (aci) => recent.nameOf(aci),
  originalOf: (ref) => recent.originalOf(ref),
  learn: (envelope) => recent.learn(envelope),
  groupOf: (id) => {
    const known = admins.get(id);
    return known && { admins: known };
  },
});

/** Returns what has arrived since the last call. */
function arrived() {
  const batch = readFrames(server.notifications.slice(read), known());
  read = server.notifications.length;
  return batch;
}

function only(): InboundEnvelope {
  const { events, unreadable } = arrived();
  expect(unreadable).toEqual([]);
  expect(events).toHaveLength(1);
  const [envelope] = events;
  if (envelope === undefined) throw new Error('nothing has arrived');
  return envelope;
}

function eventOf<K extends InboundEvent['kind']>(kind: K): Extract<InboundEvent, { kind: K }> {
  const { event } = only();
  expect(event.kind).toBe(kind);
  // The kind was checked above.
  return event as Extract<InboundEvent, { kind: K }>;
}

const idOf = (message: { from: Person; timestamp: number }) => `${message.from.uuid}:${message.timestamp}`;

describe('direct messages', () => {
  it('identifies a direct message by author and time and replies where it was written', () => {
    const message = server.people.writes({ from: ada, text: 'hello' });
    expect(only()).toMatchObject({
      eventKey: `message:${ada.uuid}:1:${message.timestamp}`,
      sentAt: message.timestamp,
      route: {
        channel: 'signal',
        account: server.account.uuid,
        conversation: ada.uuid,
        replyTo: idOf(message),
      },
      chat: { kind: 'dm' },
      sender: { id: ada.uuid, name: 'Ada', isBot: false, isSelf: false },
      event: {
        kind: 'message',
        messageId: idOf(message),
        text: 'hello',
        mentionsBot: false,
        repliesToBot: false,
      },
    });
  });

  it('tells messages from two devices at the same time apart', () => {
    const { timestamp } = server.people.writes({ from: ada, text: 'one', device: 1 });
    const first = only();
    server.people.writes({ from: ada, text: 'two', device: 2, timestamp });
    expect(only().eventKey).not.toBe(first.eventKey);
  });

  it('carries the files of a message with what is claimed about them', () => {
    const file = server.world.addAttachment({
      bytes: Buffer.from('x'),
      fileName: 'a\u0000.png',
      contentType: 'image/png',
    });
    const voice = server.world.addAttachment({ bytes: Buffer.from('xy'), contentType: 'audio/aac' });
    server.people.writes({ from: ada, attachments: [file, voice] });
    expect(eventOf('message')).toMatchObject({
      text: '',
      attachments: [
        { ref: file.id, kind: 'image', name: 'a\ufffd.png', mimeType: 'image/png', sizeBytes: 1 },
        { ref: voice.id, kind: 'audio', mimeType: 'audio/aac', sizeBytes: 2 },
      ],
    });
  });

  it('keeps a message from a sender without an ACI as unreadable', () => {
    server.people.writes({
      from: { name: 'Old', uuid: 'PNI:1', number: '+15551230000' },
      to: server.account,
      text: 'x',
    });
    const { events, unreadable } = arrived();
    expect(events).toEqual([]);
    expect(unreadable).toMatchObject([{ problem: 'has no sender with an ACI' }]);
  });
});

describe('mentions', () => {
  it('puts mentions into the text by name, counted in UTF-16', () => {
    server.people.writes({ from: bob, to: team, text: 'I am Bob' });
    arrived();
    const bot = { ...server.account, name: 'Parley' };
    server.people.writes({
      from: ada,
      to: team,
      text: '👋🏽 @Parley ask @Bob, not @Cleo.',
      mentioning: [
        bot,
        bob,
        server.world.addPerson({ name: 'Cleo', number: null, uuid: 'abcdef01-0000-4000-8000-000000000000' }),
      ],
    });
    expect(eventOf('message')).toMatchObject({
      text: '👋🏽 @Parley ask @Bob, not @person abcdef01.',
      mentionsBot: true,
    });
  });

  it('does not count mentions of others or its bare name as addressing the bot', () => {
    server.people.writes({ from: ada, to: team, text: '@Bob and @Parley', mentioning: [bob] });
    expect(eventOf('message').mentionsBot).toBe(false);
  });

  it("keeps any text intact, whatever the mentions' ranges are", () => {
    const range = fc.record({ start: fc.nat(12), length: fc.nat(4), uuid: fc.constantFrom(null, 'x') });
    fc.assert(
      fc.property(
        fc.string({ maxLength: 10, unit: 'grapheme' }),
        fc.array(range, { maxLength: 5 }),
        (message, mentions) => {
          const envelope = {
            sourceUuid: 'abcdef01-0000-4000-8000-000000000000',
            timestamp: 5,
            dataMessage: { timestamp: 5, message: `${message}.`, mentions },
          };
          const frame = { account: server.account.number, envelope };
          const [read] = readFrames([frame], known()).events;
          const text = read?.event.kind === 'message' ? read.event.text : '';
          expect(text.replaceAll('@somebody', '').length).toBeLessThanOrEqual(message.length + 1);
          expect(text.isWellFormed()).toBe(true);
        },
      ),
    );
  });

  it('removes a mention of the bot before a command', () => {
    const mentioning = [{ ...server.account, name: 'Parley' }];
    server.people.writes({ from: ada, to: team, text: '@Parley  /stop all', mentioning });
    expect(eventOf('message')).toMatchObject({ text: '/stop all', mentionsBot: true });
    server.people.writes({ from: ada, to: team, text: '@Parley what is /stop?', mentioning });
    expect(eventOf('message').text).toBe('@Parley what is /stop?');
  });

  it.each([
    ['covers nothing', '/stop', [{ start: 0, length: 0 }], '/stop'],
    [
      'lies under another',
      '\ufffc/stop',
      [
        { start: 0, length: 1, uuid: 'abcdef01-0000-4000-8000-000000000000' },
        { start: 0, length: 1 },
      ],
      '/stop',
    ],
  ])('keeps a command intact if a mention of the bot %s', (_, message, ranges, text) => {
    const mentions = ranges.map((range) => ({ uuid: server.account.uuid, ...range }));
    const envelope = { sourceUuid: ada.uuid, timestamp: 5, dataMessage: { timestamp: 5, message, mentions } };
    const { events } = readFrames([{ account: server.account.number, envelope }], known());
    expect(events[0]?.event).toMatchObject({ kind: 'message', text });
  });
});

describe('quotes', () => {
  it('reads a quote of the bot as a reply to it, with its text and mentions', () => {
    const answer = server.world.add(
      server.account,
      { group: team },
      { from: server.account, text: 'answer' },
    );
    server.people.writes({ from: ada, to: team, text: 'why?', quoting: answer });
    expect(eventOf('message')).toMatchObject({
      repliesToBot: true,
      quote: { messageId: idOf(answer), author: 'Parley', text: 'answer' },
    });
  });

  it("leaves it to core whether a quote without an author is the bot's", () => {
    const { aci } = known().bot;
    const quote = { id: 1_700_000_000_000, authorUuid: '', text: 'answer' };
    const content = { timestamp: 1_800_000_000_000, message: 'why?', quote, groupInfo: { groupId: '' } };
    const envelope = {
      sourceUuid: ada.uuid,
      sourceDevice: 1,
      timestamp: content.timestamp,
      dataMessage: content,
    };
    const { events } = readFrames([{ account: server.account.number, envelope }], known());
    expect(events[0]).toMatchObject({
      chat: { kind: 'dm' },
      event: { repliesToBot: false, repliesTo: `${aci}:${quote.id}` },
    });
  });

  it('does not read a quote of somebody else as a reply to the bot', () => {
    const said = server.people.writes({ from: bob, to: team, text: 'the roses' });
    arrived();
    server.people.writes({ from: ada, to: team, text: 'which?', quoting: said });
    expect(eventOf('message')).toMatchObject({
      repliesToBot: false,
      quote: { messageId: idOf(said), author: 'Bob', text: 'the roses' },
    });
  });
});

describe('groups', () => {
  it('names a group by the id that messages carry', () => {
    server.people.writes({ from: ada, to: team, text: 'hi' });
    expect(only()).toMatchObject({
      route: { conversation: team.internalId },
      chat: { kind: 'group' },
    });
  });

  it('says whether the sender is an administrator as far as that is known', () => {
    server.people.writes({ from: ada, to: team, text: '/stop' });
    expect(only().sender).not.toHaveProperty('isAdmin');
    admins.set(team.internalId, new Set([ada.uuid]));
    server.people.writes({ from: ada, to: team, text: '/stop' });
    expect(only().sender.isAdmin).toBe(true);
    server.people.writes({ from: bob, to: team, text: '/stop' });
    expect(only().sender.isAdmin).toBe(false);
  });

  it('makes no event of a group change, but reads the group again', () => {
    server.people.changesGroup(ada, team, (group) => {
      group.name = 'Crew';
    });
    const by = { id: ada.uuid, name: 'Ada', isBot: false, isSelf: false };
    const changedGroups = [{ group: team.internalId, by }];
    expect(arrived()).toEqual({ events: [], unreadable: [], changedGroups });
  });

  it('calls a message in an old-style group unsupported', () => {
    const old = server.world.addGroup({
      name: 'Old',
      members: [ada, server.account],
      internalId: Buffer.alloc(16, 1).toString('base64'),
    });
    server.people.writes({ from: ada, to: old, text: 'hi' });
    expect(eventOf('unsupported').name).toBe('group-v1');
  });
});

describe('changes', () => {
  it('names an edited message as it was first sent, even after several edits', () => {
    const message = server.people.writes({ from: ada, text: 'frist' });
    arrived();
    const editedAt = server.people.edits(message, 'first');
    expect(only().event).toMatchObject({ kind: 'edit', messageId: idOf(message), text: 'first' });
    // Some apps name the latest version instead of the first.
    server.people.edits({ ...message, timestamp: editedAt }, 'very first');
    expect(only().event).toMatchObject({ kind: 'edit', messageId: idOf(message), text: 'very first' });
    server.people.deletes({ ...message, timestamp: editedAt });
    expect(only().event).toEqual({ kind: 'delete', messageId: idOf(message) });
  });

  it('names it so even if all edits are read at once, from a poll or the spool', () => {
    const message = server.people.writes({ from: ada, text: 'frist' });
    const editedAt = server.people.edits(message, 'first');
    server.people.edits({ ...message, timestamp: editedAt }, 'very first');
    server.people.deletes({ ...message, timestamp: editedAt });
    const named = arrived().events.map(({ event }) => 'messageId' in event && event.messageId);
    expect(named).toEqual(Array(4).fill(idOf(message)));
  });

  it('reads a reaction with its emoji and message', () => {
    const message = server.people.writes({ from: ada, to: team, text: 'x' });
    arrived();
    server.people.reacts(bob, message, '👍🏽');
    const { eventKey, event, route } = only();
    expect(event).toEqual({ kind: 'reaction', messageId: idOf(message), emoji: '👍🏽', isRemoved: false });
    expect(eventKey).toMatch(/^reaction:.*:on:👍🏽$/u);
    expect(route.conversation).toBe(team.internalId);
    server.people.reacts(bob, message, undefined);
    expect(eventOf('reaction').isRemoved).toBe(true);
  });

  it("cleans a reaction's emoji, which PostgreSQL would otherwise refuse", () => {
    const target = { targetAuthorUuid: ada.uuid, targetSentTimestamp: 4 };
    const dataMessage = { timestamp: 5, reaction: { ...target, emoji: 'a\u0000\ud83d', isRemove: false } };
    const envelope = { sourceUuid: ada.uuid, sourceDevice: 1, timestamp: 5, dataMessage };
    const { events } = readFrames([{ account: server.account.number, envelope }], known());
    const emoji = 'a\ufffd\ufffd';
    expect(events).toMatchObject([{ eventKey: `reaction:${ada.uuid}:1:5:on:${emoji}`, event: { emoji } }]);
  });

  it("reads a deletion by an administrator as one of another member's message", () => {
    const message = server.people.writes({ from: bob, to: team, text: 'rude' });
    arrived();
    const at = message.timestamp;
    server.people.writes({
      from: ada,
      to: team,
      fields: {
        adminDelete: { targetAuthor: bob.number, targetAuthorUuid: bob.uuid, targetSentTimestamp: at },
      },
    });
    expect(only().event).toEqual({ kind: 'delete', messageId: idOf(message) });
  });
});

describe("the account's other devices", () => {
  it("reads a note to self as its owner's message", () => {
    const message = server.people.writes({ from: server.account, text: 'remind me' });
    expect(only()).toMatchObject({
      route: { conversation: server.account.uuid },
      chat: { kind: 'dm' },
      sender: { id: server.account.uuid, isSelf: false },
      event: { kind: 'message', text: 'remind me', messageId: idOf(message) },
    });
    server.people.edits(message, 'remind me tomorrow');
    expect(eventOf('edit')).toMatchObject({ messageId: idOf(message), text: 'remind me tomorrow' });
  });

  it('reads messages that the account sends elsewhere as its own', () => {
    server.people.writes({ from: server.account, to: ada, text: 'private' });
    expect(only()).toMatchObject({ route: { conversation: ada.uuid }, sender: { isSelf: true } });
    server.people.writes({ from: server.account, to: team, text: 'hello team' });
    expect(only()).toMatchObject({ route: { conversation: team.internalId }, sender: { isSelf: true } });
  });

  it("ignores the bookkeeping of the account's other devices", () => {
    for (const syncMessage of [
      { type: 'CONTACTS_SYNC' },
      { readMessages: [{ sender: null, senderNumber: null, senderUuid: ada.uuid, timestamp: 5 }] },
      { blockedNumbers: [], blockedGroupIds: [] },
    ])
      server.people.sendsPayload(server.account, { syncMessage });
    expect(arrived()).toEqual({ events: [], unreadable: [], changedGroups: [] });
  });
});

describe('other traffic', () => {
  it('ignores receipts, typing, timers, stories and empty messages', () => {
    const answer = server.world.add(server.account, { person: ada }, { from: server.account, text: 'x' });
    server.people.types(ada);
    server.people.types(ada, team, 'STOPPED');
    server.people.receives(ada, answer, 'delivery');
    server.people.receives(ada, answer, 'read');
    server.people.setsTimer(ada, 3600);
    server.people.sendsPayload(ada, { storyMessage: { allowsReplies: true } });
    server.people.sendsPayload(ada, { callMessage: { iceUpdateMessages: [] } });
    server.people.sendsPayload(ada, {});
    expect(arrived()).toEqual({ events: [], unreadable: [], changedGroups: [] });
  });

  it('ignores messages to another account of the server', () => {
    const other = server.world.addAccount({ number: '+15550000002' });
    server.people.writes({ from: ada, to: other, text: 'for the other' });
    expect(arrived().events).toEqual([]);
  });

  it('reports a call only when it begins', () => {
    server.people.sendsPayload(ada, {
      callMessage: { offerMessage: { id: 1, type: 'AUDIO_CALL', opaque: '' } },
    });
    expect(eventOf('unsupported').name).toBe('call');
  });
});

describe('unreadable messages', () => {
  it("reports an unreadable message with its sender and signal-cli's reason", () => {
    server.people.sendsUnreadable(ada);
    const { events, unreadable } = arrived();
    expect(events).toEqual([]);
    expect(unreadable).toMatchObject([
      {
        problem: 'signal-cli could not read it: ProtocolInvalidMessageException',
        gap: {
          code: 'undecrypted',
          reason: `signal-cli couldn't decrypt it (ProtocolInvalidMessageException), from Ada (signal:${ada.uuid})`,
        },
      },
    ]);
    expect(unreadable[0]?.gap).not.toHaveProperty('conversation');
    expect(unreadable[0]?.raw).toContain(ada.uuid);
  });

  it('names the call that trusts a person whose safety number has changed', () => {
    const type = 'UntrustedIdentityException';
    server.people.sendsUnreadable(ada, { type, message: 'untrusted' });
    server.people.sendsUnreadable(ada, { type: `Protocol${type}`, message: 'untrusted' });
    const path = `/v1/identities/${server.account.number}/trust/${ada.uuid}`;
    const gap = {
      conversation: ada.uuid,
      code: 'identity-changed',
      reason: expect.stringContaining(
        `Ada (signal:${ada.uuid}) has a new safety number; to trust it: PUT ${path}`,
      ),
    };
    expect(arrived().unreadable).toMatchObject([{ gap }, { gap }]);
  });

  it('ignores a message that signal-cli has read before', () => {
    server.people.sendsUnreadable(ada, { type: 'ProtocolDuplicateMessageException', message: 'old counter' });
    expect(arrived()).toEqual({ events: [], unreadable: [], changedGroups: [] });
  });

  it('reports an unreadable message even if neither its sender nor its cause is known', () => {
    const account = server.account.number;
    const frames = [
      { account, exception: { type: 'ParseException' }, envelope: { timestamp: 7 } },
      { account, exception: {}, envelope: null },
      { account, exception: { type: 'UntrustedIdentityException' } },
    ];
    expect(readFrames(frames, known()).unreadable.map(({ gap }) => gap)).toEqual([
      { code: 'lost', reason: "signal-cli couldn't read it (ParseException)" },
      { code: 'lost', reason: "signal-cli couldn't read it" },
      { code: 'identity-changed', reason: 'its sender has a new safety number' },
    ]);
  });

  it('reads the others beside an unreadable message, which has the same key each time', () => {
    server.people.writes({ from: ada, text: 'good' });
    const [good] = server.notifications.slice(-1);
    const bad = [
      null,
      'text',
      7,
      [],
      {},
      { account: server.account.number },
      JSON.parse('{"__proto__":{"x":1}}'),
    ];
    const batch = readFrames([...bad, good], known());
    expect(batch.events).toHaveLength(1);
    expect(batch.unreadable).toHaveLength(bad.length);
    expect(readFrames(bad, known()).unreadable).toEqual(batch.unreadable);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it('never throws, whatever arrives', { timeout: 1_200_000 }, () => {
    const envelope = (payload: unknown) => ({
      account: server.account.number,
      envelope: { sourceUuid: ada.uuid, sourceDevice: 1, timestamp: 5, ...(payload as object) },
    });
    const part = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom(null, [], {}, '', -1, 1e300));
    const dataMessage = fc.record(
      {
        timestamp: fc.oneof(fc.constant(5), part),
        message: part,
        reaction: part,
        quote: part,
        mentions: part,
        attachments: part,
        groupInfo: part,
        remoteDelete: part,
      },
      { requiredKeys: ['timestamp'] },
    );
    const payload = fc.oneof(
      fc.record({ dataMessage: fc.oneof(dataMessage, part) }),
      fc.record({ editMessage: part }),
      fc.record({ syncMessage: fc.oneof(fc.record({ sentMessage: part }), part) }),
    );
    fc.assert(
      fc.property(fc.oneof(payload.map(envelope), fc.jsonValue()), (frame) => {
        const { events, unreadable } = readFrames([frame], known());
        expect(events.length + unreadable.length).toBeLessThanOrEqual(1);
        for (const { raw } of unreadable) expect(raw.isWellFormed()).toBe(true);
      }),
      { numRuns: isLong ? 1_000_000 : 3000 },
    );
  });
});
