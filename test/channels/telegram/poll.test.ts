import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { longestJson } from '#channel-kit/read-json.ts';
import type { Log } from '#contracts/log.ts';
import { botOf, formatCursor, readCursor } from '../../../channels/telegram/ids.ts';
import { readBatch } from '../../../channels/telegram/inbound.ts';
import { startTelegramServer, type TelegramServer } from '../../platforms/telegram/server.ts';
import type { TgUpdate } from '../../platforms/telegram/types.ts';
import { absurdJson } from '../../support/absurd-json.ts';
import { budget, holds } from '../../support/holds.ts';
import { silentLog } from '../../support/silent-log.ts';
import { watchParsing } from '../../support/watch-parsing.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { ada, bob, hastyClock, newAdapter } from './telegram-setup.ts';

const forever = new AbortController().signal;
let server: TelegramServer;
let intake: RecordingIntake;
let adapter: ReturnType<typeof newAdapter>;

beforeEach(async () => {
  server = await startTelegramServer();
  intake = new RecordingIntake();
  adapter = newAdapter(server);
});
afterEach(async () => {
  await adapter.stop();
  await server.close();
});

const begin = async () => {
  await adapter.identify(forever);
  await adapter.start(intake);
};
const says = (text: string) => server.userSends({ from: ada, text });
const polls = () => server.calls.filter((call) => call.method === 'getUpdates');
const asked = (method: string) => server.calls.filter((call) => call.method === method).length;
const polling = () => server.waitFor(() => server.updates.isPolled);
const refusal = (code: number, description: string, parameters?: Record<string, number>) =>
  ({ kind: 'refuse', code, description, ...(parameters ? { parameters } : {}) }) as const;

describe('the offset', () => {
  it('moves the offset only after intake has stored the batch', async () => {
    await begin();
    await polling();
    const polled = polls().length;
    const release = intake.hold();
    says('one');
    await intake.waitFor(() => intake.attempts === 1);
    // The next poll would confirm it, so it must not come before the release.
    await expect(server.waitFor(() => polls().length > polled, 150)).rejects.toThrow('nothing matched');
    release();
    await server.waitFor(() => server.updates.pending.length === 0);
    expect(intake.cursor).toBe(`${server.bot.id}:${server.updates.confirmedBelow}`);
  });

  it('does not confirm the offset on stop while a batch is being stored', async () => {
    await begin();
    const release = intake.hold();
    says('in hand');
    await intake.waitFor(() => intake.attempts === 1);
    const stopped = adapter.stop();
    release();
    await stopped;
    expect(intake.texts).toEqual(['in hand']);
    expect(server.updates.pending).toHaveLength(1);
    expect(polls().at(-1)?.params).not.toHaveProperty('offset');
  });

  it('starts polling at the stored cursor', async () => {
    await begin();
    says('old');
    await intake.waitFor(() => intake.texts.length === 1);
    await adapter.stop();
    intake = intake.restarted();
    adapter = newAdapter(server);
    await begin();
    says('new');
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.batches.flatMap(({ events }) => events)).toHaveLength(1);
  });

  it('ignores the cursor of another bot, which would hide every update', async () => {
    intake = new RecordingIntake({
      events: [],
      keys: new Set(),
      anchors: new Map(),
      cursor: '999:999999999',
    });
    says('for the new bot');
    await begin();
    await intake.waitFor(() => intake.texts.length === 1);
    expect(polls()[0]?.params).not.toHaveProperty('offset');
  });

  it("follows Telegram's new numbering after a week of silence without a hot loop", async () => {
    await begin();
    says('before the silence');
    await intake.waitFor(() => intake.texts.length === 1);
    await polling();
    server.updates.renumber(1000);
    says('after it');
    await intake.waitFor(() => intake.texts.length === 2);
    await server.waitFor(() => server.updates.pending.length === 0);
    await polling();
    expect(polls().length).toBeLessThan(6);
  });

  it('reads back every cursor that it writes, and nothing else', () => {
    const bot = botOf({ id: 42, username: 'x' });
    holds(
      fc.property(fc.nat(), (offset) => readCursor(bot, formatCursor(bot, offset)) === offset),
      {},
    );
    for (const other of [
      undefined,
      '',
      '42',
      '42:',
      '42:-1',
      '42:x',
      '43:7',
      '42:1e9',
      '42:99999999999999999999',
    ])
      expect(readCursor(bot, other)).toBeUndefined();
  });
});

describe('starting', () => {
  it.each([
    [23, 0],
    [25, 1],
  ])(
    'counts an absence of %i hours as %i gaps, because Telegram keeps updates for a day',
    async (hours, gaps) => {
      const since = Date.now() - hours * 3_600_000;
      intake.heldUntil = since;
      says('the newest');
      await begin();
      await intake.waitFor(() => intake.texts.length === 1);
      expect(intake.gaps).toMatchObject(Array.from({ length: gaps }, () => ({ since, code: 'too-old' })));
    },
  );

  it('removes a webhook without dropping pending updates, and requests its kinds of updates by name', async () => {
    server.platform.webhookUrl = 'https://elsewhere.example/hook';
    says('waited for you');
    await begin();
    await intake.waitFor(() => intake.texts.length === 1);
    const removal = server.calls.find((call) => call.method === 'deleteWebhook');
    expect(removal?.params).toEqual({ drop_pending_updates: false });
    expect(server.updates.allowed).toEqual([
      'message',
      'edited_message',
      'callback_query',
      'message_reaction',
      'my_chat_member',
      'stopped_message_generation',
    ]);
  });

  it('hands over the backlog of a long absence in batches, in order', async () => {
    const texts = Array.from({ length: 250 }, (_, index) => `message ${index}`);
    for (const text of texts) says(text);
    await begin();
    await intake.waitFor(() => intake.texts.length === 250);
    expect(intake.texts).toEqual(texts);
    expect(intake.batches.map(({ events }) => events.length)).toEqual([100, 100, 50]);
  });
});

describe('problems', () => {
  it('reports once that Telegram is unreachable and once that it is back, and loses nothing', async () => {
    await begin();
    await polling();
    await server.goAway();
    await intake.waitFor(() => intake.troubles.length === 2);
    says('while away');
    await server.comeBack();
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.troubles.map((one) => one?.kind)).toEqual([undefined, 'unreachable', undefined]);
  });

  it.each([
    ['a 500', refusal(500, 'Internal Server Error')],
    ["a proxy's page", { kind: 'page', code: 502 } as const],
    ['a cut connection', { kind: 'cut' } as const],
    ['a lost answer', { kind: 'drop-answer' } as const],
    ['a 429', refusal(429, 'Too Many Requests: retry after 3', { retry_after: 3 })],
  ])('recovers after %s on the poll', async (_, fault) => {
    server.fault(fault, { method: 'getUpdates', times: 2 });
    says('still arrives');
    await begin();
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.texts).toEqual(['still arrives']);
  });

  it('reports a second poller as a conflict and continues when the other one stops', async () => {
    await begin();
    await polling();
    server.updates.poll(0, { limit: 1, isLong: true, answer: () => undefined });
    await intake.waitFor(() => intake.troubles.some((one) => one?.kind === 'conflict'));
    says('mine again');
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.troubles.at(-1)).toBeUndefined();
  });

  it('stops polling when the token is revoked', async () => {
    await begin();
    await polling();
    server.revokeToken();
    says('wakes the poll');
    await intake.waitFor(() => intake.troubles.some((one) => one?.kind === 'unauthorised'));
    const calls = server.calls.length;
    await adapter.stop();
    expect(server.calls.length).toBe(calls);
  });
});

describe('a bot that is renamed in BotFather', () => {
  let now = Date.now();
  const loud: string[] = [];
  const log: Log = {
    ...silentLog,
    warn: (_fields, event) => void loud.push(event),
    error: (_fields, event) => void loud.push(event),
  };
  const rename = () => Object.assign(server.bot, { username: 'RenamedBot' });

  beforeEach(async () => {
    loud.length = 0;
    adapter = newAdapter(server, { clock: { ...hastyClock, now: () => now }, log });
    await begin();
    await polling();
  });

  it('recognizes a renamed bot by the first message to its new name, and no longer by the old one', async () => {
    const { chat } = server.world.addSupergroup('Team');
    rename();
    now += 60_000;
    const texts = ['@RenamedBot hello', '/status@renamedbot', '@ParleyTestBot hello', '@AnotherBot hello'];
    for (const text of texts) server.userSends({ chat: chat.id, from: ada, text });
    await intake.waitFor(() => intake.texts.length === texts.length);
    const addressed = intake.events.map(({ event }) => event.kind === 'message' && event.mentionsBot);
    expect(addressed).toEqual([true, true, false, false]);
    expect(intake.names).toEqual(['ParleyTestBot', 'RenamedBot']);
    expect(asked('getMe')).toBe(2);
  });

  it('learns the new name within the hour; until then it asks rarely and keeps the old one', async () => {
    rename();
    server.fault(refusal(500, 'Internal Server Error'), { method: 'getMe' });
    const hears = async (text: string) => {
      says(text);
      await intake.waitFor(() => intake.texts.includes(text));
    };
    now += 3_600_000;
    await hears('an hour later');
    await server.waitFor(() => asked('getMe') === 2);
    now += 299_000;
    for (const text of ['once', 'twice', 'thrice']) await hears(text);
    expect([asked('getMe'), intake.names]).toEqual([2, ['ParleyTestBot']]);
    now += 1_000;
    await hears('five minutes later');
    await intake.waitFor(() => intake.names.at(-1) === 'RenamedBot');
    expect(asked('getMe')).toBe(3);
    expect(loud).toEqual([]);
  });
});

describe('incoming updates', () => {
  it('accepts updates that arrive twice, out of order and between invalid ones', async () => {
    await begin();
    await polling();
    server.updates.arrangeNext((updates) => [...updates].reverse());
    await adapter.stop();
    for (const text of ['a', 'b', 'c']) says(text);
    server.updates.push('message', { message_id: 1 });
    await begin();
    await intake.waitFor(() => intake.texts.length === 3);
    server.updates.redeliver(4);
    says('d');
    await intake.waitFor(() => intake.texts.length === 4);
    expect([...intake.texts].sort()).toEqual(['a', 'b', 'c', 'd']);
    await server.waitFor(() => server.updates.pending.length === 0);
  });

  it('stores an update without an id as unreadable and does not loop', async () => {
    await begin();
    server.updates.pushRaw({ message: {} } as unknown as TgUpdate);
    await intake.waitFor(() => intake.unreadable.length >= 1);
    says('behind it');
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.unreadable[0]?.eventKey).toMatch(/^unreadable:[0-9a-f]{32}$/);
  });

  it('marks a group command with whether its sender is an administrator, and asks once a minute', async () => {
    const { chat, admins } = server.world.addSupergroup('Team');
    admins.add(ada.id);
    for (const from of [ada, bob, ada]) server.userSends({ chat: chat.id, from, text: '/stop' });
    server.userSends({ chat: chat.id, from: ada, text: 'hello' });
    await begin();
    await intake.waitFor(() => intake.texts.length === 4);
    expect(intake.events.map(({ sender }) => sender.isAdmin)).toEqual([true, false, true, undefined]);
    server.userSends({ chat: chat.id, from: ada, text: '\u3000/status' });
    await intake.waitFor(() => intake.texts.length === 5);
    expect(intake.events.at(-1)?.sender.isAdmin).toBe(true);
    expect(asked('getChatMember')).toBe(2);
  });

  it('stops asking for administrators for as long as Telegram wants', async () => {
    const { chat, admins } = server.world.addSupergroup('Team');
    admins.add(ada.id);
    let now = Date.now();
    adapter = newAdapter(server, { clock: { ...hastyClock, now: () => now } });
    await begin();
    server.fault(refusal(429, 'Too Many Requests: retry after 30', { retry_after: 30 }), {
      method: 'getChatMember',
    });
    const rankOf = async (text: string) => {
      server.userSends({ chat: chat.id, from: ada, text });
      await intake.waitFor(() => intake.texts.includes(text));
      return intake.events.at(-1)?.sender.isAdmin;
    };
    expect([await rankOf('/one'), await rankOf('/two'), asked('getChatMember')]).toEqual([
      undefined,
      undefined,
      1,
    ]);
    now += 30_000;
    expect(await rankOf('/three')).toBe(true);
  });

  it("accepts a command even if the question about its sender's rank is not answered", async () => {
    const { chat } = server.world.addSupergroup('Team');
    server.fault({ kind: 'cut' }, { method: 'getChatMember' });
    await begin();
    server.userSends({ chat: chat.id, from: ada, text: '/stop' });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.events[0]?.sender.isAdmin).toBeUndefined();
  });
});

describe('threat 18: untrusted JSON', () => {
  it('survives any update without an exception, a changed prototype or a lost neighbor', {
    timeout: 600_000,
  }, () => {
    const bot = botOf({ id: 700, username: 'ParleyBot' });
    const chat = { id: 5, type: 'private', first_name: 'A' };
    const good = {
      update_id: 2,
      message: { message_id: 8, date: 1, chat, from: { id: 5, first_name: 'A' }, text: 'x' },
    };
    const kind = fc.constantFrom(
      'message',
      'edited_message',
      'callback_query',
      'message_reaction',
      'my_chat_member',
      'poll',
      '__proto__',
    );
    const key = fc.constantFrom(
      'message_id',
      'date',
      'chat',
      'from',
      'text',
      'entities',
      'photo',
      'reply_to_message',
      'id',
      'type',
      'constructor',
      'data',
    );
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constant(chat),
      fc.constant(good.message),
      fc.integer(),
    );
    const body = fc.oneof(
      fc.jsonValue(),
      fc.dictionary(key, value),
      fc.dictionary(key, value).map((odd) => ({ ...good.message, ...odd })),
    );
    const frame = fc
      .tuple(kind, body, fc.oneof(fc.constant(1), fc.jsonValue()))
      .map(([name, content, id]) =>
        JSON.parse(`{"update_id":${JSON.stringify(id)},"${name}":${JSON.stringify(content)}}`),
      );
    const before = Object.getOwnPropertyNames(Object.prototype).join();
    const property = fc.property(frame, (bad: unknown) => {
      const batch = readBatch([bad, good], bot, 0);
      expect(batch.events.at(-1)?.eventKey).toBe('message:5:8');
      expect(batch.events.length + batch.unreadable.length).toBeGreaterThanOrEqual(2);
      expect(() => JSON.stringify(batch)).not.toThrow();
    });
    holds(property, budget(1_000_000, 2000));
    expect(Object.getOwnPropertyNames(Object.prototype).join()).toBe(before);
  });

  it.each(absurdJson)(
    'keeps an update with %s raw, without harm to its neighbors or the event loop',
    async (_, absurd) => {
      const told: Record<string, unknown>[] = [];
      const log = { ...silentLog, warn: (fields: object) => void told.push({ ...fields }) };
      adapter = newAdapter(server, { log });
      says('before');
      const id = server.updates.pushRaw({ update_id: 900_000_000, message: { body: JSON.parse(absurd) } });
      const most = watchParsing();
      says('behind');
      await begin();
      await intake.waitFor(() => intake.texts.length === 2);
      await server.waitFor(() => server.updates.pending.length === 0);
      expect(intake.texts).toEqual(['before', 'behind']);
      expect(intake.unreadable.map(({ eventKey }) => eventKey)).toEqual([`unreadable:${id}`]);
      expect(told).toContainEqual({
        eventKey: `unreadable:${id}`,
        problem: expect.stringMatching(/longer|more than|nested/),
      });
      expect(most.bytes).toBeLessThanOrEqual(longestJson);
    },
  );

  it('asks for fewer updates where many are too large together, and loses none', async () => {
    const texts = Array.from({ length: 12 }, (_, at) => `message ${at}`);
    for (const [at, text] of texts.entries()) {
      const chat = { id: 77, type: 'private', first_name: 'Ada' };
      const message = {
        message_id: 1000 + at,
        date: 1_790_000_000,
        chat,
        from: { ...chat, is_bot: false },
        text,
      };
      const padding = 'x'.repeat(longestJson / 8);
      server.updates.pushRaw({ update_id: 900_000_000 + at, message: { ...message, padding } });
    }
    await begin();
    await intake.waitFor(() => intake.texts.length === texts.length);
    expect(intake.texts).toEqual(texts);
    expect(intake.unreadable).toEqual([]);
    says('behind');
    await intake.waitFor(() => intake.texts.includes('behind'));
  });
});
