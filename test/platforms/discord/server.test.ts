/** A client library that knows nothing about this server must accept it as Discord. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { patienceMs } from '../../support/patience.ts';
import { type Bot, startBot } from './discord-js-bot.ts';
import { mention } from './people.ts';
import { type DiscordServer, startDiscordServer } from './server.ts';
import { channelTypes, type DiscordUser } from './types.ts';
import type { ChannelState, GuildState } from './world.ts';

let server: DiscordServer;
let ada: DiscordUser;
let team: GuildState;
let general: ChannelState;
let bot: Bot;

beforeEach(async () => {
  server = await startDiscordServer();
  ada = server.world.addUser('ada', 'Ada');
  team = server.world.addGuild('Team', ada);
  general = server.world.addChannel(team, 'general');
});
afterEach(async () => {
  await bot?.stop();
  await server.close();
});

/** Waits until the bot has received exactly this. */
const heard = (...expected: readonly string[]) =>
  vi.waitFor(() => expect(bot.heard).toEqual(expected), { timeout: patienceMs, interval: 10 });

describe('discord.js', () => {
  beforeEach(async () => {
    bot = await startBot(server);
  });

  it('sends discord.js direct, guild, thread and forum messages', async () => {
    const forum = server.places.createsChannel(team, 'ideas', channelTypes.forum);
    server.people.sends({ from: ada, text: 'direct' });
    const asked = server.people.sends({ from: ada, channel: general, text: `${mention(server.bot)} hi` });
    const thread = server.places.startsThread({ owner: ada, parent: general, name: 'side', on: asked });
    server.people.sends({ from: ada, channel: thread, text: 'in the thread' });
    server.places.archives(thread);
    server.people.sends({ from: ada, channel: thread, text: 'awake again' });
    expect(thread.thread?.isArchived).toBe(false);
    const post = server.places.postsInForum({ forum, title: 'idea', from: ada, text: 'a post' });
    expect(post.message.id).toBe(post.thread.id);
    await heard(
      'says direct',
      `says ${mention(server.bot)} hi`,
      'thread side',
      // The thread begins with a message that only points to the one it hangs on.
      'says ',
      // The platform reports "updated" for a message that gets a thread; its text is the same.
      `edits ${mention(server.bot)} hi`,
      'says in the thread',
      'says awake again',
      'thread idea',
      'says a post',
    );
    expect(server.refusals).toEqual([]);
  });

  it('sends discord.js edits, deletions and reactions', async () => {
    const first = server.people.sends({ from: ada, channel: general, text: 'one' });
    server.people.edits(first, 'two');
    server.people.reacts(first, ada, '👍');
    server.people.takesReactionBack(first, ada, '👍');
    server.people.deletes(first);
    await heard('says one', 'edits two', 'reacts 👍', 'unreacts 👍', 'deletes');
  });

  it('tells discord.js who joins and leaves, and that the bot was removed', async () => {
    const bob = server.world.addUser('bob');
    server.places.joins(team, bob);
    server.places.leaves(team, bob);
    server.places.removesBot(team);
    await heard('joins bob', 'leaves bob', 'removed Team');
    await expect(bot.send(general.id, 'x')).rejects.toThrow(/Missing Access/);
  });

  it('lets discord.js send, reply, edit, react, type and delete', async () => {
    const asked = server.people.sends({ from: ada, channel: general, text: 'hello?' });
    const first = await bot.send(general.id, 'working', 'nonce-1');
    expect(await bot.send(general.id, 'working', 'nonce-1')).toBe(first);
    await bot.edit(general.id, first, 'done');
    const reply = await bot.reply(general.id, asked.id, `${mention(ada)} @everyone`);
    await bot.react(general.id, asked.id, '👀');
    await bot.react(general.id, asked.id, '🔥');
    await bot.unreact(general.id, asked.id, '👀');
    await bot.type(general.id);
    const gone = await bot.sendFile(general.id, 'notes.txt', 'some text');
    expect(server.messages(general.id).at(-1)?.files[0]).toMatchObject({ name: 'notes.txt', sizeBytes: 9 });
    await bot.delete(general.id, gone);
    expect(server.texts(general.id)).toEqual([
      'ada: hello?',
      'parley: done',
      `parley: ${mention(ada)} @everyone`,
    ]);
    const [question, answer, other] = server.messages(general.id);
    expect([...(question?.reactions.keys() ?? [])]).toEqual(['🔥']);
    expect(answer?.history.map((one) => one.text)).toEqual(['working']);
    expect(other).toMatchObject({ id: reply, replyTo: asked.id });
    expect(server.typing).toHaveLength(1);
    expect(server.deletedMessages(general.id).map((one) => one.id)).toEqual([gone]);
    expect(server.pings).toEqual([]);
    expect(server.refusals).toEqual([]);
  });

  it('lets discord.js open a direct conversation, unless the person refuses messages', async () => {
    await bot.send(await bot.openDm(ada.id), 'hi Ada');
    const dm = server.world.dmWith(ada);
    expect(server.texts(dm.id)).toEqual(['parley: hi Ada']);
    server.people.blocks(ada);
    await expect(bot.send(dm.id, 'still there?')).rejects.toThrow(/Cannot send messages to this user/);
    expect(server.refusals).toMatchObject([{ status: 403, code: 50007 }]);
  });

  it.each([
    ['a cut', () => server.gateway.cut()],
    ['a request to reconnect', () => server.gateway.askToReconnect()],
  ])('lets discord.js resume after %s and sends what it missed, once and in order', async (_, interrupt) => {
    server.people.sends({ from: ada, text: 'before' });
    await heard('says before');
    interrupt();
    for (const text of ['gap 1', 'gap 2', 'gap 3']) server.people.sends({ from: ada, text });
    await heard('says before', 'says gap 1', 'says gap 2', 'says gap 3');
    await server.waitFor(() => server.gateway.counts.resumes === 1);
    server.people.sends({ from: ada, text: 'after' });
    await heard('says before', 'says gap 1', 'says gap 2', 'says gap 3', 'says after');
    expect(server.gateway.counts).toMatchObject({ identifies: 1, resumes: 1 });
    expect(server.gateway.urls.at(-1)).toMatch(/^\/resume/);
  });

  it('sends discord.js nothing of what happened between two sessions, but lists it', async () => {
    const before = server.people.sends({ from: ada, channel: general, text: 'before' });
    await heard('says before');
    server.gateway.cut({ isResumable: false });
    server.people.sends({ from: ada, channel: general, text: 'gap 1' });
    server.people.sends({ from: ada, channel: general, text: 'gap 2' });
    await server.waitFor(() => server.gateway.live.length === 1 && server.gateway.counts.identifies === 2);
    server.people.sends({ from: ada, channel: general, text: 'after' });
    await heard('says before', 'says after');
    expect(server.gateway.counts).toMatchObject({ refusedResumes: 1, resumes: 0 });
    expect(await bot.listAfter(general.id, before.id)).toEqual(['after', 'gap 2', 'gap 1']);
  });

  it('sends discord.js what was said during an outage', async () => {
    await server.goAway();
    server.people.sends({ from: ada, text: 'anybody?' });
    await server.comeBack();
    // A client may be refused once or twice before the server is back, and may report that.
    await vi.waitFor(() => expect(bot.heard).toContain('says anybody?'), { timeout: patienceMs });
  });

  it('lets discord.js answer a command later and a button at once', async () => {
    await bot.setCommands(['status']);
    const used = server.people.uses({ from: ada, name: 'status', channel: general });
    await server.waitFor(() => server.answersTo(used).length === 2);
    expect(server.answersTo(used).map((one) => one.text)).toEqual(['done status', 'and more']);
    expect(server.texts(general.id)).toEqual(['parley: done status', 'parley: and more']);
    const button = { type: 2, style: 1, label: 'Go', custom_id: 'go:1' };
    const asking = server.world.add(general, {
      author: server.bot,
      text: 'sure?',
      components: [{ type: 1, components: [button] }],
    });
    const pressed = server.people.presses(asking, ada, 'go:1');
    await server.waitFor(() => server.answersTo(pressed).length === 1);
    expect(server.answersTo(pressed)[0]).toMatchObject({ text: 'pressed', ephemeralFor: ada.id });
    expect(server.texts(general.id)).not.toContain('parley: pressed');
    expect(server.refusals).toEqual([]);
  });
});

describe('discord.js at its start', () => {
  it('refuses discord.js with a wrong token', async () => {
    server.revokeToken();
    await expect(startBot(server)).rejects.toThrow();
    expect(server.gateway.counts.identifies).toBe(0);
  });

  it('refuses discord.js intents that the application was not granted', async () => {
    await server.close();
    server = await startDiscordServer({ privileged: { messageContent: false } });
    await expect(startBot(server)).rejects.toThrow(/intents/i);
    expect(server.refusals).toMatchObject([{ what: 'gateway', code: 4014 }]);
  });
});
