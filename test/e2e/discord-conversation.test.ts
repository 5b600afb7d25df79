import { beforeAll, describe, test } from 'vitest';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { createGate } from '../platforms/anthropic/gate.ts';
import { lastTextShown, textShown, type WireBody } from '../platforms/anthropic/wire.ts';
import { mention } from '../platforms/discord/people.ts';
import { channelTypes } from '../platforms/discord/types.ts';
import type { ChannelState } from '../platforms/discord/world.ts';
import { countEvents, countTold, findBreaches, readStore, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { type DiscordSide, discordOf } from './discord-side.ts';
import { type AtEnd, type Config, openStage, type Stage } from './stage.ts';
import { until } from './until.ts';

const texts = textsFor('en');
const agents = [{ id: 'main' }, { id: 'cook', name: 'Auguste', specialty: 'Recipes' }];

const echo = (body: WireBody) => ({ text: `You said: ${lastTextShown(body)}` });

async function openDiscord(atEnd: AtEnd, config: Config = {}) {
  const stage = await openStage({ config, networks: ['discord'] }, atEnd);
  return { stage, discord: discordOf(stage) };
}

describeRow('on Discord', (atEnd) => {
  let stage: Stage;
  let discord: DiscordSide;
  let garden: ChannelState;
  const inboxOf = (id: number, columns: string) =>
    readStore(stage.dataDir, `select ${columns} from inbox where senderId = ?`, discord.user(id).id);

  beforeAll(async () => {
    ({ stage, discord } = await openDiscord(atEnd, { agents }));
    const { world } = discord.server;
    const guild = world.addGuild('Team', discord.user(504));
    world.addMember(guild, discord.user(505));
    garden = world.addChannel(guild, 'garden');
    await stage.start();
  });

  test('answers a direct message once, with typing and styles, and pings nobody', async ({ expect }) => {
    const { server } = discord;
    const before = countEvents(stage.dataDir);
    const ada = discord.user(501);
    const gate = createGate();
    stage.model.script([{ text: `**@everyone**, 2 * 3 = 6, ${mention(ada)}.`, hold: { gate } }]);
    const { channelId } = server.people.sends({ from: ada, text: 'Hello?' });
    await gate.reached;
    await server.waitFor(() => server.typing.length > 0);
    gate.open();
    await untilAtRest(stage.dataDir, before + 1);
    const texts = server.botMessages(channelId).map(({ text }) => text);
    expect(texts).toEqual([`**\\@everyone**, 2 \\* 3 = 6, \\${mention(ada)}.`]);
    expect(countTold(stage.dataDir, ['Hello?'])).toEqual([1]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
    expect([server.refusals, server.pings]).toEqual([[], []]);
  });

  test('stops the run on a slash command and answers it there', async ({ expect, onTestFinished }) => {
    const { server } = discord;
    const before = countEvents(stage.dataDir);
    const gate = createGate();
    onTestFinished(() => gate.open());
    stage.model.script([{ text: 'It was a dark night.', hold: { gate } }]);
    await server.waitFor(() => (server.platform.commands.get('global')?.length ?? 0) > 0);
    const ada = discord.user(503);
    server.people.sends({ from: ada, text: 'Tell me a story.' });
    await gate.reached;
    const used = server.people.uses({ from: ada, name: 'stop' });
    const isAnswered = () => server.answersTo(used).some(({ text }) => text === texts.stopped);
    await server.waitFor(isAnswered);
    await untilAtRest(stage.dataDir, before + 2);
    const messages = inboxOf(503, 'kind, outcome').filter(({ kind }) => kind === 'message');
    expect(messages).toMatchObject([{ outcome: 'cancelled' }]);
    expect(server.answersTo(used)).toHaveLength(1);
    expect(server.refusals).toEqual([]);
  });

  test('answers a guild where Parley is mentioned or replied to, with the messages before it', async ({
    expect,
  }) => {
    const { server } = discord;
    const [before, asked] = [countEvents(stage.dataDir), stage.model.requests.length];
    const [ada, bob] = [discord.user(504), discord.user(505)];
    stage.model.script((_body, count) => ({ text: `Answer ${count}.` }));
    server.people.sends({ from: bob, channel: garden, text: 'The roses want water.' });
    const bot = mention(server.bot);
    server.people.sends({ from: ada, channel: garden, text: `${bot} what did Bob say?` });
    const first = await server.waitFor(() => server.botMessages(garden.id)[0]);
    await untilAtRest(stage.dataDir, before + 2);
    server.people.sends({ from: bob, channel: garden, text: 'Is that all?', replyTo: first });
    await server.waitFor(() => server.botMessages(garden.id).length === 2);
    const thread = server.places.startsThread({ parent: garden, name: 'roses', owner: ada });
    server.people.sends({ from: ada, channel: thread, text: `${bot} and here?` });
    await server.waitFor(() => server.botMessages(thread.id).length === 1);
    await untilAtRest(stage.dataDir, before + 4);

    const requests = stage.model.requests.slice(asked);
    const [one = '', two = '', three = ''] = requests.map(({ body }) => textShown(body));
    expect(one).toMatch(
      /<<<untrusted [^>]*>>>\n\[Person 505[^\n]*\] The roses want water\.\n<<<end untrusted/,
    );
    expect(one).toMatch(/\[Person 504[^\n]*\] @parley what did Bob say\?/);
    expect(two).toContain('Is that all?');
    // A thread is its own conversation.
    expect(three).not.toContain('roses want');
    expect(server.botMessages(garden.id).map(({ text }) => text)).toEqual(['Answer 1.', 'Answer 2.']);
    expect(server.botMessages(thread.id).map(({ text }) => text)).toEqual(['Answer 3.']);
    expect(findBreaches(stage.dataDir)).toEqual([]);
    expect([server.refusals, server.pings]).toEqual([[], []]);
  });

  test('gives a thread an agent of its own by a slash command of the guild’s owner', async ({ expect }) => {
    const { server } = discord;
    const before = countEvents(stage.dataDir);
    const ada = discord.user(504);
    stage.model.script(echo);
    const thread = server.places.startsThread({ parent: garden, name: 'herbs', owner: ada });
    await server.waitFor(() => (server.platform.commands.get('global')?.length ?? 0) > 0);
    const used = server.people.uses({ from: ada, name: 'agent', options: { text: 'cook' }, channel: thread });
    const told = /Auguste \\?\(cook\\?\) answers in this topic/;
    await server.waitFor(() => server.answersTo(used).some(({ text }) => told.test(text)));
    server.people.sends({ from: ada, channel: thread, text: `${mention(server.bot)} which herbs?` });
    await untilAtRest(stage.dataDir, before + 2);
    const lanes = readStore(stage.dataDir, 'select key from lanes where key like ?', `%:thread:${thread.id}`);
    expect(lanes.map(({ key }) => String(key).split(':')[0])).toContain('cook');
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });
});

describe.concurrent('a restart with Discord', { timeout: 300_000 }, () => {
  test('answers messages sent while Parley was down once, in their channels', async ({
    expect,
    onTestFinished,
  }) => {
    const { stage, discord } = await openDiscord(onTestFinished, { queue: { dm: { mode: 'followup' } } });
    const { server } = discord;
    const ada = discord.user(501);
    const guild = server.world.addGuild('Team', ada);
    const general = server.world.addChannel(guild, 'general');
    const forum = server.world.addChannel(guild, 'ideas', channelTypes.forum);
    stage.model.script(echo);
    const person = stage.person('discord');
    const first = await stage.start();
    person.says('My cat is called Byron.');
    await until(() => person.standing().length === 1, { what: 'the first answer' });
    await untilAtRest(stage.dataDir, 1);
    await first.stop();

    const bot = mention(server.bot);
    person.says('What is my cat called?');
    person.says('And my dog?');
    server.people.sends({ from: ada, channel: general, text: `${bot} in the channel` });
    const { thread } = server.places.postsInForum({ from: ada, forum, title: 'a', text: `${bot} in a post` });
    server.gateway.expireSessions();
    await stage.start();
    await until(() => person.standing().length === 3, { what: 'the answers' });
    await server.waitFor(() => server.botMessages(general.id).length === 1);
    await server.waitFor(() => server.botMessages(thread.id).length === 1);
    await untilAtRest(stage.dataDir, 5);
    expect(person.standing()).toEqual([
      'You said: My cat is called Byron.',
      'You said: What is my cat called?',
      'You said: And my dog?',
    ]);
    expect(server.botMessages(general.id)[0]?.text).toContain('in the channel');
    expect(server.botMessages(thread.id)[0]?.text).toContain('in a post');
    expect(readStore(stage.dataDir, 'select distinct outcome from inbox')).toEqual([{ outcome: 'answered' }]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
    expect(server.refusals).toEqual([]);
  });
});
