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
  it('receives missed messages once and in order after a resume, without reading histories', async () => {
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

  it('resumes when Discord asks it to reconnect', async () => {
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
  it('reads missed messages in every kind of conversation after a new session, once and in order', async () => {
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

  it('reads histories again that it read before the new session began', async () => {
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

describe("the bot's name and roles", () => {
  it('follows a renamed bot, whether the session or the next one reports it', async () => {
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

  it('loses access that came from a deleted role', () => {
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

describe('conversations unknown to this process', () => {
  it('looks up an unknown conversation, even if an edit, a reaction or a deletion arrives first', async () => {
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

  it('finds an unknown direct conversation again after a crash before its first message was stored', async () => {
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

  it('receives a message that reopens an archived thread', async () => {
    const { server, ada, general, begin } = await aDiscordStage();
    const thread = server.places.startsThread({ parent: general, name: 'old', owner: ada });
    server.places.archives(thread);
    const { intake } = await begin();
    server.people.sends({ from: ada, channel: thread, text: 'still here?' });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(intake.events[0]?.route).toMatchObject({ conversation: general.id, thread: thread.id });
  });
});

describe('intake', () => {
  it('hands events to intake again after the store was unavailable, in order and once', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const { intake } = await begin();
    intake.failNext('store_full', 3);
    const texts = Array.from({ length: 150 }, (_, index) => `m${index}`);
    for (const text of texts) server.people.sends({ from: ada, text });
    await intake.waitFor(() => intake.texts.length === texts.length);
    expect(intake.texts).toEqual(texts);
  });

  it('hands nothing more to intake once another process owns the account', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const { intake } = await begin();
    intake.failNext('stale_epoch');
    server.people.sends({ from: ada, text: 'for the other' });
    await intake.waitFor(() => intake.attempts === 1);
    await server.waitFor(() => server.gateway.live.length === 0);
    expect(intake.texts).toEqual([]);
  });
});

describe('settings in the developer portal', () => {
  it('receives only mentions without Message Content, and says what to switch on', async () => {
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

  it('reconnects when the settings change while the bot runs, and reads what was missed', async () => {
    const { server, ada, begin } = await aDiscordStage();
    const { intake } = await begin();
    server.people.sends({ from: ada, text: 'one' });
    await intake.waitFor(() => intake.texts.length === 1);
    server.gateway.cut({ code: 4014, isResumable: false });
    server.people.sends({ from: ada, text: 'two' });
    await intake.waitFor(() => intake.texts.length === 2);
    expect(server.gateway.counts.identifies).toBe(2);
  });

  it('reports a token that is revoked while the bot runs as refused', async () => {
    const { server, begin } = await aDiscordStage();
    const { adapter, intake } = await begin();
    server.revokeToken();
    await intake.waitFor(() => intake.troubles.some((trouble) => trouble?.kind === 'unauthorised'));
    const [check] = await adapter.checks.check(forever);
    expect(check).toMatchObject({ result: 'failed', fix: expect.stringContaining('DISCORD_BOT_TOKEN') });
  });
});
