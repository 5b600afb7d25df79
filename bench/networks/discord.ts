import { type DiscordSide, openDiscordSide } from '../../test/e2e/discord-side.ts';
import { now } from '../clock.ts';
import { followCalls, type Network, patienceMs } from '../network.ts';

export async function startDiscord(): Promise<Network> {
  return discordOn(await openDiscordSide('', { now }));
}

export function discordOn({ server, user, person, environment, close }: DiscordSide): Network {
  const persons = new Map<string, number>();
  const untilConnected = async () => {
    await server.waitFor(() => server.gateway.live.length > 0, patienceMs);
  };
  return {
    name: 'discord',
    environment,
    say: (number, text) => {
      const from = user(number);
      const channel = server.world.dmWith(from);
      persons.set(channel.id, number);
      const at = now();
      server.people.sends({ from, channel, text });
      return at;
    },
    atOnce: (act) => act(),
    follow: followCalls(server, ({ route, path, body, status, at }) => {
      if (route !== 'POST /channels/:channel/messages') return undefined;
      const number = persons.get(path.split('/').at(-2) ?? '') ?? Number.NaN;
      return status === 0 ? 'open' : { person: number, text: String(body.content), at };
    }),
    answersTo: (number) => person(number).standing(),
    untilReachable: untilConnected,
    // The bot gets it immediately, as long as it is connected.
    untilQuiet: untilConnected,
    meets: () => undefined,
    close,
  };
}
