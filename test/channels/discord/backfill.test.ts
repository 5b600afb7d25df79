import { describe, expect, it } from 'vitest';
import { hastyBelow, hastyClock } from '../hasty-clock.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { aDiscordStage } from './discord-stage.ts';

const hourMs = 3_600_000;
const numbered = (count: number) => Array.from({ length: count }, (_, index) => `m${index}`);

/** Returns a clock that the test advances, for the platform and for the adapter. */
function aTime() {
  let at = Date.now() - 48 * hourMs;
  return {
    now: () => at,
    pass: (ms: number) => {
      at += ms;
    },
    clock: { ...hastyClock, now: () => at },
  };
}

describe('messages missed while Parley was down', () => {
  it("hands over missed messages once, in order and page by page, without the bot's own", async () => {
    const { server, ada, general, dm, begin, readings } = await aDiscordStage();
    const first = await begin();
    server.people.sends({ from: ada, text: 'before' });
    await first.intake.waitFor(() => first.intake.texts.length === 1);
    await first.adapter.stop();
    const texts = numbered(250);
    for (const [index, text] of texts.entries()) {
      server.people.sends({ from: ada, channel: general, text });
      if (index % 50 === 0) server.people.sends({ from: server.bot, channel: general, text: 'mine' });
    }
    server.people.sends({ from: ada, text: 'after' });

    const { intake } = await begin(first.intake.restarted());
    await intake.waitFor(() => intake.texts.length === 252);
    expect(intake.texts.filter((text) => text.startsWith('m'))).toEqual(texts);
    expect(intake.texts).not.toContain('mine');
    expect(readings(general.id)).toHaveLength(3);
    expect(intake.gaps).toEqual([]);
    expect(intake.anchors.get(dm.id as never)).toBe(server.messages(dm.id).at(-1)?.id);
    expect(intake.anchors.get(general.id as never)).toBe(server.messages(general.id).at(-1)?.id);
  });

  it('finds missed messages in a thread that was archived meanwhile', async () => {
    const { server, ada, general, begin } = await aDiscordStage();
    const thread = server.places.startsThread({ parent: general, name: 'plans', owner: ada });
    const first = await begin();
    server.people.sends({ from: ada, channel: thread, text: 'one' });
    await first.intake.waitFor(() => first.intake.texts.length === 1);
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: thread, text: 'two' });
    server.places.archives(thread);
    const { intake } = await begin(first.intake.restarted());
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['one', 'two']);
  });

  it('leaves out messages that are too old and reports the gap once', async () => {
    const time = aTime();
    const { server, ada, dm, begin } = await aDiscordStage({ now: time.now });
    const first = await begin(new RecordingIntake(), { clock: time.clock });
    server.people.sends({ from: ada, text: 'one' });
    await first.intake.waitFor(() => first.intake.texts.length === 1);
    await first.adapter.stop();
    const since = time.now();
    time.pass(hourMs);
    server.people.sends({ from: ada, text: 'too old' });
    time.pass(3 * hourMs);
    const again = { clock: time.clock, backfillHours: 1 };
    const second = await begin(first.intake.restarted(), again);
    await second.intake.waitFor(() => second.intake.batches.length === 1);
    await second.adapter.stop();
    expect(second.intake.gaps).toEqual([
      { conversation: dm.id, since, code: 'too-old', reason: expect.stringContaining('too old') },
    ]);
    server.people.sends({ from: ada, text: 'two' });
    const { intake } = await begin(second.intake.restarted(), again);
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['one', 'two']);
    expect(intake.gaps).toEqual([]);
  });

  it('reports a gap where the bot may not read the history, and keeps receiving live events', async () => {
    const { server, ada, general, begin } = await aDiscordStage();
    const first = await begin();
    server.people.sends({ from: ada, channel: general, text: 'one' });
    await first.intake.waitFor(() => first.intake.texts.length === 1);
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: general, text: 'unreadable' });
    server.places.denies(general, 'readMessageHistory');
    const { intake } = await begin(first.intake.restarted());
    await intake.waitFor(() => intake.gaps.length > 0);
    server.people.sends({ from: ada, channel: general, text: 'two' });
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['one', 'two']);
    expect(intake.gaps).toMatchObject([{ conversation: general.id }]);
  });

  const passing = [
    { what: 'a rate limit', fault: { kind: 'rate-limit', retryAfterMs: 50 } },
    { what: 'a 403 of Discord’s edge', fault: { kind: 'refuse', status: 403, code: 0, message: 'no' } },
    { what: 'a 404 of Discord’s edge', fault: { kind: 'refuse', status: 404, code: 0, message: 'no' } },
    { what: 'an answer that stops halfway', fault: { kind: 'stall' } },
  ] as const;
  it.each(passing)('waits for $what and reads the history afterwards', async ({ fault }) => {
    const { server, ada, general, begin } = await aDiscordStage();
    const first = await begin();
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: general, text: 'one' });
    server.fault(fault, { route: 'GET /channels/:channel/messages' });
    const { intake } = await begin(first.intake.restarted(), { callTimeoutMs: 1000 });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.gaps).toEqual([]);
  });
});

describe('a history that a proxy refuses', () => {
  const page = { kind: 'page', status: 403 } as const;
  const times = Number.POSITIVE_INFINITY;

  it('gives up a history with a gap if only the history is refused, and keeps receiving', async () => {
    const { server, ada, general, begin, readings } = await aDiscordStage();
    const first = await begin();
    server.people.sends({ from: ada, channel: general, text: 'one' });
    await first.intake.waitFor(() => first.intake.texts.length === 1);
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: general, text: 'refused' });
    server.fault(page, { route: 'GET /channels/:channel/messages', times });
    const { intake } = await begin(first.intake.restarted());
    server.people.sends({ from: ada, channel: general, text: 'two' });
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['one', 'two']);
    expect(intake.gaps).toMatchObject([{ conversation: general.id, code: 'history-refused' }]);
    expect(readings(general.id).length).toBeGreaterThan(20);
  });

  it('waits for a history as long as Discord refuses everything', async () => {
    const { server, ada, general, begin, readings } = await aDiscordStage();
    const first = await begin();
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: general, text: 'one' });
    for (const route of ['GET /channels/:channel/messages', 'GET /users/@me'])
      server.fault(page, { route, times });
    const adapter = first.adapter;
    const intake = first.intake.restarted();
    await adapter.start(intake);
    await expect.poll(() => readings(general.id).length).toBeGreaterThan(40);
    server.clearFaults();
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.gaps).toEqual([]);
  });
});

describe('reading a conversation', () => {
  it("delays a conversation's live events until its missed messages are read, and no other's", async () => {
    const { server, ada, bob, begin } = await aDiscordStage();
    const { intake } = await begin();
    server.people.sends({ from: bob, text: 'hello' });
    await intake.waitFor(() => intake.texts.length === 1);
    server.gateway.fault({ kind: 'drop', event: 'MESSAGE_CREATE' });
    server.people.sends({ from: ada, text: 'missed' });
    const route = 'GET /channels/:channel/messages';
    server.fault({ kind: 'page', status: 502 }, { route, times: Number.POSITIVE_INFINITY });
    server.people.sends({ from: ada, text: 'live' });
    server.people.sends({ from: bob, text: 'another' });
    await intake.waitFor(() => intake.texts.length === 2);
    server.clearFaults();
    await intake.waitFor(() => intake.texts.length === 4);
    expect(intake.texts).toEqual(['hello', 'another', 'missed', 'live']);
  });
});

it('reads other conversations while one cannot be read', async () => {
  const { server, ada, guild, begin } = await aDiscordStage();
  const channels = ['one', 'two', 'three', 'four'].map((name) => server.world.addChannel(guild, name));
  const first = await begin();
  await first.adapter.stop();
  const [sound] = channels.toReversed();
  for (const channel of channels) server.people.sends({ from: ada, channel, text: `in ${channel.name}` });
  for (const { id } of channels.filter((channel) => channel !== sound))
    server.fault({ kind: 'page', status: 502 }, { id, times: Number.POSITIVE_INFINITY });
  const { intake } = await begin(first.intake.restarted());
  await intake.waitFor(() => intake.texts.includes('in four'));
  server.clearFaults();
  await intake.waitFor(() => intake.texts.length === channels.length);
});

describe('a guild that the gateway does not report', () => {
  it('requests an unreported guild, reads its unknown channels, and again when it is reported', async () => {
    const { server, ada, guild, general, begin } = await aDiscordStage();
    const first = await begin();
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: general, text: 'missed' });
    server.gateway.withheld.add('GUILD_CREATE');
    const refused = { kind: 'refuse', status: 500, code: 0, message: 'no' } as const;
    server.fault(refused, { route: 'GET /guilds/:guild/channels' });
    const { intake } = await begin(first.intake.restarted());
    await intake.waitFor(() => intake.texts.length === 1);
    server.gateway.fault({ kind: 'drop', event: 'MESSAGE_CREATE' });
    server.people.sends({ from: ada, channel: general, text: 'told by nobody' });
    server.places.findsGuild(guild);
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['missed', 'told by nobody']);
  });

  it('loses nothing of a known channel that was read before its guild was reported', async () => {
    const { server, ada, guild, general, begin } = await aDiscordStage();
    const first = await begin();
    server.people.sends({ from: ada, channel: general, text: 'known' });
    await first.intake.waitFor(() => first.intake.texts.length === 1);
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: general, text: 'missed' });
    server.gateway.withheld.add('GUILD_CREATE');
    // Known channels are read before the missing guild is requested.
    const { intake } = await begin(first.intake.restarted(), { clock: hastyBelow(30_000) });
    await intake.waitFor(() => intake.texts.length === 2);
    server.gateway.fault({ kind: 'drop', event: 'MESSAGE_CREATE' });
    server.people.sends({ from: ada, channel: general, text: 'told by nobody' });
    server.places.findsGuild(guild);
    await intake.waitFor(() => intake.texts.length === 3);
    expect(intake.texts).toEqual(['known', 'missed', 'told by nobody']);
  });
});

describe('an unavailable guild', () => {
  it('loses nothing of an unknown channel in a guild that was unavailable', async () => {
    const time = aTime();
    const { server, ada, guild, general, begin } = await aDiscordStage({ now: time.now });
    const { intake } = await begin(new RecordingIntake(), { clock: time.clock });
    server.places.losesGuild(guild);
    time.pass(10 * 60_000);
    server.people.sends({ from: ada, channel: general, text: 'told by nobody' });
    time.pass(10 * 60_000);
    // If all conversations counted as known up to this point, older messages would never be looked for.
    server.people.sends({ from: ada, text: 'meanwhile' });
    await intake.waitFor(() => intake.texts.length === 1);
    server.places.findsGuild(guild);
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['meanwhile', 'told by nobody']);
  });

  it('loses nothing of a channel that was being read when its guild became unavailable', async () => {
    const { server, ada, bob, guild, general, begin, readings } = await aDiscordStage();
    const first = await begin();
    await first.adapter.stop();
    server.people.sends({ from: ada, channel: general, text: 'missed' });
    const route = 'GET /channels/:channel/messages';
    server.fault({ kind: 'page', status: 502 }, { route, times: Number.POSITIVE_INFINITY });
    const { intake } = await begin(first.intake.restarted());
    await server.waitFor(() => readings(general.id).length > 0);
    server.places.losesGuild(guild);
    const { heartbeats } = server.gateway.counts;
    server.gateway.askForHeartbeat();
    await server.waitFor(() => server.gateway.counts.heartbeats > heartbeats);
    server.clearFaults();
    // Now that the faults are cleared, Discord says that the bot sees no such channel, which ends the reading.
    server.people.sends({ from: bob, text: 'meanwhile' });
    await intake.waitFor(() => intake.texts.length === 1);
    server.people.sends({ from: ada, channel: general, text: 'told by nobody' });
    server.places.findsGuild(guild);
    await intake.waitFor(() => intake.texts.length === 3);
    expect(intake.texts).toEqual(['meanwhile', 'missed', 'told by nobody']);
  });

  it('makes the conversations of a guild unreachable when it removes the bot', async () => {
    const { server, ada, guild, general, begin } = await aDiscordStage();
    const { intake } = await begin();
    server.people.sends({ from: ada, channel: general, text: 'one' });
    await intake.waitFor(() => intake.texts.length === 1);
    server.places.removesBot(guild);
    await intake.waitFor(() => intake.events.length === 2);
    expect(intake.events[1]).toMatchObject({
      event: { kind: 'membership', isMember: false },
      route: { conversation: general.id },
    });
  });

  it('reports once that a guild added the bot, by its owner and in a channel the bot may write in', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const club = server.world.addGuild('Club', ada);
    club.isBotIn = false;
    const [rules, lobby] = ['rules', 'lobby'].map((name) => server.world.addChannel(club, name));
    if (!rules || !lobby) throw new Error('test error: there are two channels');
    server.places.denies(rules, 'sendMessages');
    const { intake } = await begin();
    server.places.addsBot(club);
    // Discord reports the guild again, as in every session.
    server.places.findsGuild(club);
    server.people.sends({ from: ada, channel: lobby, text: 'hello' });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.events).toHaveLength(2);
    expect(intake.events[0]).toMatchObject({
      event: { kind: 'membership', isMember: true },
      sender: { id: ada.id, isSelf: false },
      route: { conversation: lobby.id },
      chat: { kind: 'group', parent: club.id },
    });
  });
});
