import { onTestFinished } from 'vitest';
import { plainText } from '#contracts/formatted-text.ts';
import { messageId, partKey } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { DiscordAdapter } from '../../../channels/discord/adapter.ts';
import type { DiscordServerOptions } from '../../platforms/discord/server.ts';
import type { Call } from '../../platforms/discord/types.ts';
import { RecordingIntake } from '../recording-intake.ts';
import { type AdapterOptions, setUpDiscord } from './discord-setup.ts';

export const forever = new AbortController().signal;
const history = 'GET /channels/:channel/messages';

/** A Discord server with Ada in a guild, and processes that run the bot on one data folder until the test ends. */
export async function aDiscordStage(options: DiscordServerOptions = {}) {
  const setup = await setUpDiscord(options);
  const { server } = setup;
  const adapters: DiscordAdapter[] = [];
  onTestFinished(async () => {
    for (const adapter of adapters) await adapter.stop();
    await setup.close();
  });
  const ada = server.world.addUser('ada', 'Ada');
  const bob = server.world.addUser('bob', 'Bob');
  const guild = server.world.addGuild('Team', ada);
  server.world.addMember(guild, bob);
  return {
    ...setup,
    ada,
    bob,
    guild,
    general: server.world.addChannel(guild, 'general'),
    dm: server.world.dmWith(ada),
    begin: async (intake = new RecordingIntake(), adapterOptions: AdapterOptions = {}) => {
      const adapter = setup.newAdapter(adapterOptions);
      adapters.push(adapter);
      await adapter.identify(forever);
      await adapter.start(intake);
      return { adapter, intake };
    },
    /** Returns the requests for a channel's history so far. */
    readings: (channelId: string): readonly Call[] =>
      server.calls.filter(({ route, path }) => route === history && path.includes(channelId)),
    /** Returns the calls so far that post a message. */
    posts: () => server.calls.filter(({ route }) => route === 'POST /channels/:channel/messages'),
  };
}

export type DiscordStage = Awaited<ReturnType<typeof aDiscordStage>>;

export function aText(route: ReplyRoute, text: string, key = `run-1:1:${text}`): Outbound {
  return { key: partKey(key), route, content: { kind: 'text', text: plainText(text) } };
}

export function replyingTo(route: ReplyRoute, id: string): ReplyRoute {
  return { ...route, replyTo: messageId(id) };
}
