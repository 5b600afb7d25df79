import { startDiscordServer } from '../../test/platforms/discord/server.ts';
import { now } from '../clock.ts';
import { followCalls, lazily, type Network, patienceMs } from '../network.ts';

export async function startDiscord(): Promise<Network> {
  const server = await startDiscordServer({ now });
  const persons = new Map<string, number>();
  const user = lazily((person) => {
    const from = server.world.addUser(`person${person}`);
    const channel = server.world.dmWith(from);
    persons.set(channel.id, person);
    return { from, channel };
  });
  const untilConnected = async () => {
    await server.waitFor(() => server.gateway.live.length > 0, patienceMs);
  };
  return {
    name: 'discord',
    environment: { DISCORD_BOT_TOKEN: server.token, DISCORD_API_BASE: server.apiUrl },
    say: (person, text) => {
      const writer = user(person);
      const at = now();
      server.people.sends({ ...writer, text });
      return at;
    },
    atOnce: (act) => act(),
    follow: followCalls(server, ({ route, path, body, status, at }) => {
      if (route !== 'POST /channels/:channel/messages') return undefined;
      const person = persons.get(path.split('/').at(-2) ?? '') ?? Number.NaN;
      return status === 0 ? 'open' : { person, text: String(body.content), at };
    }),
    answersTo: (person) => server.botMessages(user(person).channel.id).map(({ text }) => text),
    untilReachable: untilConnected,
    // The bot gets it immediately, as long as it is connected.
    untilQuiet: untilConnected,
    meets: () => undefined,
    close: () => server.close(),
  };
}
