/** What other gateways got wrong on Discord (pitfall 51). */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { NativeCommand } from '#contracts/channel-abilities.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { DiscordAdapter } from '../../../channels/discord/adapter.ts';
import { mention } from '../../platforms/discord/people.ts';
import type { DiscordServerOptions } from '../../platforms/discord/server.ts';
import { channelTypes } from '../../platforms/discord/types.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { setUpDiscord } from './discord-setup.ts';

const forever = new AbortController().signal;
const stop: NativeCommand = { name: 'stop', description: 'Stops what runs.' };

async function aBot(options: DiscordServerOptions = {}) {
  const { server, newAdapter, close } = await setUpDiscord(options);
  const adapters: DiscordAdapter[] = [];
  onTestFinished(async () => {
    for (const adapter of adapters) await adapter.stop();
    await close();
  });
  const ada = server.world.addUser('ada', 'Ada');
  const guild = server.world.addGuild('Team', ada);
  const begin = async (intake = new RecordingIntake()) => {
    const adapter = newAdapter();
    adapters.push(adapter);
    await adapter.identify(forever);
    await adapter.start(intake);
    return { adapter, intake };
  };
  return { server, ada, guild, begin };
}

function messageIn(intake: RecordingIntake, text: string): InboundEnvelope | undefined {
  return intake.events.find(({ event }) => event.kind === 'message' && event.text.endsWith(text));
}

describe('pitfall 51', () => {
  it('sends heartbeats and acknowledges slash commands while the store is blocked', async () => {
    const { server, ada, begin } = await aBot({ heartbeatIntervalMs: 1000 });
    const { adapter, intake } = await begin();
    await adapter.commands.register([stop], forever);
    const release = intake.hold();
    server.people.sends({ from: ada, text: 'takes long' });
    await intake.waitFor(() => intake.attempts > 0);
    const { heartbeats } = server.gateway.counts;
    const used = server.people.uses({ from: ada, name: 'stop' });
    await server.waitFor(() => used.answer !== undefined);
    expect(server.interactions.failed(used)).toBe(false);
    // Discord closes a socket that misses two of them.
    await server.waitFor(() => server.gateway.counts.heartbeats >= heartbeats + 3);
    expect(intake.events).toEqual([]);
    release();
    await intake.waitFor(() => intake.events.length === 2);
    expect(intake.texts).toEqual(['takes long', '/stop']);
    expect(server.gateway.counts).toMatchObject({ connections: 1, identifies: 1, resumes: 0 });
    expect(server.refusals).toEqual([]);
  });

  it('hears a thread from its first message, even if it began without a mention', async () => {
    const { server, ada, guild, begin } = await aBot();
    const general = server.world.addChannel(guild, 'general');
    const forum = server.world.addChannel(guild, 'ideas', channelTypes.forum);
    const { intake } = await begin();
    const { thread: post } = server.places.postsInForum({
      from: ada,
      forum,
      title: 'Tea',
      text: 'We need tea.',
    });
    const thread = server.places.startsThread({ parent: general, name: 'cake', owner: ada });
    server.people.sends({ from: ada, channel: thread, text: 'And cake.' });
    for (const channel of [post, thread])
      server.people.sends({
        from: ada,
        channel,
        text: `${mention(server.bot)} what do we need in ${channel.id}?`,
      });
    await intake.waitFor(() => intake.events.filter(({ event }) => event.kind === 'message').length === 4);

    for (const [place, parent, first] of [
      [post, forum, 'We need tea.'],
      [thread, general, 'And cake.'],
    ] as const) {
      const asked = messageIn(intake, `what do we need in ${place.id}?`);
      const route = { conversation: parent.id, thread: place.id };
      expect(messageIn(intake, first)).toMatchObject({ route, event: { mentionsBot: false } });
      expect(asked).toMatchObject({ route, event: { mentionsBot: true } });
    }
  });

  it('receives a first direct message from somebody the bot has never met', async () => {
    const { server, begin } = await aBot();
    const { intake } = await begin();
    const eve = server.world.addUser('eve', 'Eve');
    const { channelId } = server.people.sends({ from: eve, text: 'hello' });
    await intake.waitFor(() => intake.texts.length === 1);
    expect(messageIn(intake, 'hello')).toMatchObject({
      route: { conversation: channelId },
      sender: { id: eve.id },
      chat: { kind: 'dm' },
    });
  });

  it('gives a message the same key and route, whether live or from the history', async () => {
    const { server, ada, guild, begin } = await aBot();
    const general = server.world.addChannel(guild, 'general');
    const thread = server.places.startsThread({ parent: general, name: 'plans', owner: ada });
    const { adapter, intake } = await begin();
    const met = server.people.sends({ from: ada, text: 'before' });
    await intake.waitFor(() => intake.texts.length === 1);
    // The next process knows nothing that came after this.
    const later = new RecordingIntake({
      events: [],
      keys: new Set(),
      anchors: new Map(intake.anchors),
      cursor: intake.cursor,
    });
    server.people.sends({ from: ada, text: 'direct', replyTo: met });
    server.people.sends({ from: ada, channel: general, text: 'in the channel' });
    server.people.sends({ from: ada, channel: thread, text: 'in the thread' });
    await intake.waitFor(() => intake.texts.length === 4);
    await adapter.stop();
    await begin(later);
    await later.waitFor(() => later.texts.length >= 3);
    for (const text of ['direct', 'in the channel', 'in the thread']) {
      const [live, historic] = [messageIn(intake, text), messageIn(later, text)];
      if (live === undefined || historic === undefined) throw new Error(`${text} has not come twice`);
      // The history doesn't contain the author's rank.
      const { sender: _, ...rest } = live;
      expect(historic).toMatchObject(rest);
      expect(historic.sender.id).toBe(live.sender.id);
    }
  });
});
