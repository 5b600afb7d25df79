import { PermissionFlagsBits } from 'discord.js';
import { describe, expect, it } from 'vitest';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { Directory } from '../../../channels/discord/directory.ts';
import { botOf } from '../../../channels/discord/ids.ts';
import { channelTypes } from '../../platforms/discord/types.ts';
import { silentLog } from '../../support/silent-log.ts';
import { hastyClock } from '../hasty-clock.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { aDiscordStage, forever } from './discord-stage.ts';

describe('a resumed session', () => {
  it('brings what was missed once and in order, without a look at history', async () => {
    const { server, ada, general, dm, begin, readings } = await aDiscordStage();
    const { intake } = await begin();
    server.people.sends({ from: ada, text: 'one' });
    await intake.waitFor(() => intake.texts.length === 1);
    const before = readings(dm.id).length;
    server.gateway.cut();
    server.people.sends({ from: ada, text: 'two' });
    server.people.sends({ from: ada, channel: general, text: 'three' });
    await intake.waitFor(() => intake.texts.length === 3);
    expect(intake.texts).toEqual(['one', 'two', 'three']);
    expect(server.gateway.counts).toMatchObject({ identifies: 1, resumes: 1 });
    expect([readings(dm.id).length, readings(general.id).length]).toEqual([before, 0]);
    expect(server.refusals).toEqual([]);
  });

  it('is asked for when Discord asks to connect again', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const { intake } = await begin();
    server.gateway.askToReconnect();
    await server.waitFor(() => server.gateway.counts.resumes === 1);
    server.people.sends({ from: ada, text: 'after' });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(server.gateway.counts.identifies).toBe(1);
  });
});

describe('a new session', () => {
  it('reads what was missed in every kind of conversation, once and in order', async () => {
    const { server, ada, guild, general, begin } = await aDiscordStage();
    const thread = server.places.startsThread({ parent: general, name: 'plans', owner: ada });
    const forum = server.world.addChannel(guild, 'ideas', channelTypes.forum);
    const { intake } = await begin();
    server.people.sends({ from: ada, text: 'known' });
    await intake.waitFor(() => intake.texts.length === 1);
    server.gateway.cut({ isResumable: false });
    for (const text of ['dm 1', 'dm 2']) server.people.sends({ from: ada, text });
    for (const text of ['guild 1', 'guild 2']) server.people.sends({ from: ada, channel: general, text });
    server.people.sends({ from: ada, channel: thread, text: 'thread 1' });
    const post = server.places.postsInForum({ from: ada, forum, title: 'a post', text: 'post 1' });
    await intake.waitFor(() => intake.texts.length === 7);
    for (const place of ['dm', 'guild', 'thread', 'post'])
      expect(intake.texts.filter((text) => text.startsWith(place))).toEqual(
        ['dm', 'guild'].includes(place) ? [`${place} 1`, `${place} 2`] : [`${place} 1`],
      );
    const routeOf = (text: string) =>
      intake.events.find(({ event }) => event.kind === 'message' && event.text === text)?.route;
    expect(routeOf('post 1')).toMatchObject({ conversation: forum.id, thread: post.thread.id });
    expect(routeOf('thread 1')).toMatchObject({ conversation: general.id, thread: thread.id });
    expect(server.gateway.counts.identifies).toBe(2);
  });

  it('reads again what was read before it began', async () => {
    const { server, bob, begin, readings } = await aDiscordStage();
    const gate = Promise.withResolvers<void>();
    // Discord wants 5 s between two identifies; the second one waits at this gate.
    const clock: Clock = {
      now: hastyClock.now,
      wait: (ms, signal) => (ms > 3000 && ms < 5000 ? gate.promise : hastyClock.wait(ms, signal)),
    };
    const { intake } = await begin(new RecordingIntake(), { clock });
    const theirs = server.world.dmWith(bob).id;
    server.fault({ kind: 'slow', ms: 100 }, { route: 'GET /channels/:channel/messages' });
    server.people.sends({ from: bob, text: 'one' });
    await server.waitFor(() => readings(theirs).length === 1);
    server.gateway.invalidate(false);
    await server.waitFor(() => readings(theirs).filter(({ answered }) => answered).length >= 2);
    await intake.waitFor(() => intake.texts.includes('one'));
    server.people.sends({ from: bob, text: 'told by nobody' });
    gate.resolve();
    await intake.waitFor(() => intake.texts.length === 2);
    expect(intake.texts).toEqual(['one', 'told by nobody']);
  });
});

describe('a bot', () => {
  it('that is renamed goes by its new name, told by the session or by the next one', async () => {
    const { server, ada, general, begin } = await aDiscordStage();
    const { bot } = server.world;
    const { intake } = await begin();
    const calls = () => server.people.sends({ from: ada, channel: general, text: `<@${bot.id}> hello` });
    server.gateway.dispatch({ t: 'USER_UPDATE', data: () => ({ id: bot.id, username: 'renamed' }) });
    calls();
    await intake.waitFor(() => intake.texts.includes('@renamed hello'));
    Object.assign(bot, { username: 'renamed-again' });
    server.gateway.cut({ isResumable: false });
    await intake.waitFor(() => intake.names.length === 2);
    calls();
    await intake.waitFor(() => intake.texts.includes('@renamed-again hello'));
    expect(intake.names).toEqual(['renamed', 'renamed-again']);
  });

  it('sees no more by a role that is deleted', () => {
    const bot = botOf({ id: '9', username: 'parley' });
    const directory = new Directory(bot);
    const all = String(PermissionFlagsBits.ViewChannel | PermissionFlagsBits.SendMessages);
    const roles = [
      { id: '1', name: '@everyone', permissions: '0' },
      { id: '2', name: 'readers', permissions: all },
    ];
    const members = [{ user: { id: bot.id, username: 'parley' }, roles: ['2'] }];
    const channels = [{ id: '5', type: channelTypes.text, name: 'general' }];
    directory.apply('GUILD_CREATE', { id: '1', name: 'Team', owner_id: '7', roles, members, channels });
    expect(directory.access('5')).toMatchObject({ canView: true, canWrite: true });
    directory.apply('GUILD_ROLE_DELETE', { guild_id: '1', role_id: '2' });
    expect(directory.access('5')).toMatchObject({ canView: false, canWrite: false });
  });
});

describe('a conversation that this process knows nothing of', () => {
  it('is asked for, also when the first that comes of it is an edit, a reaction or a deletion', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const first = await begin();
    const said = ['a', 'b', 'c'].map((text) => server.people.sends({ from: ada, text }));
    await first.intake.waitFor(() => first.intake.texts.length === 3);
    await first.adapter.stop();
    const { intake } = await begin(first.intake.restarted());
    const [one, two, three] = said;
    if (!one || !two || !three) throw new Error('three were said');
    server.people.reacts(one, ada, '👍');
    server.people.edits(two, 'b!');
    server.people.deletes(three);
    await intake.waitFor(() => intake.events.length === 6);
    const kinds = intake.events.slice(3).map(({ event, sender }) => [event.kind, sender.id]);
    expect(kinds).toEqual([
      ['reaction', ada.id],
      ['edit', ada.id],
      ['delete', ada.id],
    ]);
    expect(intake.unreadable).toEqual([]);
  });

  it('that is a direct one is found again after a crash before its first message was stored', async () => {
    const { server, ada, dm, begin } = await aDiscordStage();
    const first = await begin();
    first.intake.failNext('store_unavailable', 1_000_000);
    // Other server implementations do this, and so did Discord once.
    server.gateway.dispatch({ t: 'CHANNEL_CREATE', data: () => ({ id: dm.id, type: 1 }) });
    server.people.sends({ from: ada, text: 'hello?' });
    await first.intake.waitFor(() => first.intake.attempts > 0);
    await first.adapter.stop();
    expect(first.intake.texts).toEqual([]);
    const { intake } = await begin(first.intake.restarted());
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.texts).toEqual(['hello?']);
  });

  it('is a thread that was archived: writing in it wakes it up', async () => {
    const { server, ada, general, begin } = await aDiscordStage();
    const thread = server.places.startsThread({ parent: general, name: 'old', owner: ada });
    server.places.archives(thread);
    const { intake } = await begin();
    server.people.sends({ from: ada, channel: thread, text: 'still here?' });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.events[0]?.route).toMatchObject({ conversation: general.id, thread: thread.id });
  });
});

describe('the intake', () => {
  it('is handed what comes while the store is away, in order, and nothing twice', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const { intake } = await begin();
    intake.failNext('store_full', 3);
    const texts = Array.from({ length: 150 }, (_, index) => `m${index}`);
    for (const text of texts) server.people.sends({ from: ada, text });
    await intake.waitFor(() => intake.texts.length === texts.length);
    expect(intake.texts).toEqual(texts);
  });

  it('is handed nothing more once another process has the account', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const { intake } = await begin();
    intake.failNext('stale_epoch');
    server.people.sends({ from: ada, text: 'for the other' });
    await intake.waitFor(() => intake.attempts === 1);
    await server.waitFor(() => server.gateway.live.length === 0);
    expect(intake.texts).toEqual([]);
  });
});

describe('what the developer portal allows', () => {
  it('without Message Content the bot goes on with what mentions it, and says what to switch on', async () => {
    const { server, ada, general, begin } = await aDiscordStage({ privileged: { messageContent: false } });
    const warned: unknown[] = [];
    const log: Log = { ...silentLog, warn: (fields, event) => void warned.push([event, fields]) };
    const { adapter, intake } = await begin(new RecordingIntake(), { log });
    expect(warned).toEqual([
      ['discord.message-content-missed', { fix: expect.stringContaining('Message Content Intent') }],
    ]);
    server.people.sends({ from: ada, channel: general, text: `<@${server.bot.id}> hello` });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.texts).toEqual(['@parley hello']);
    const checks = await adapter.checks.check(forever);
    expect(checks.find(({ name }) => name === 'message content')).toMatchObject({
      result: 'warning',
      fix: expect.stringContaining('Message Content Intent'),
    });
  });

  it('may change while the bot runs: it connects anew, and reads what was missed', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const { intake } = await begin();
    server.people.sends({ from: ada, text: 'one' });
    await intake.waitFor(() => intake.texts.length === 1);
    server.gateway.cut({ code: 4014, isResumable: false });
    server.people.sends({ from: ada, text: 'two' });
    await intake.waitFor(() => intake.texts.length === 2);
    expect(server.gateway.counts.identifies).toBe(2);
  });

  it('a token that is withdrawn while the bot runs is said to be refused', async () => {
    const { server, begin } = await aDiscordStage();
    const { adapter, intake } = await begin();
    server.revokeToken();
    await intake.waitFor(() => intake.troubles.some((trouble) => trouble?.kind === 'unauthorised'));
    const [check] = await adapter.checks.check(forever);
    expect(check).toMatchObject({ result: 'failed', fix: expect.stringContaining('DISCORD_BOT_TOKEN') });
  });
});
