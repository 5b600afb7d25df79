import { startTelegramServer, type TelegramServer } from '../../test/platforms/telegram/server.ts';
import { now } from '../clock.ts';
import { followCalls, type Network, patienceMs } from '../network.ts';

export async function startTelegram(): Promise<Network> {
  return telegramOn(await startTelegramServer({ now }));
}

export function telegramOn(server: TelegramServer): Network {
  return {
    name: 'telegram',
    environment: server.environment,
    say: (person, text) => {
      const at = now();
      server.userSends({ from: { id: person, is_bot: false, first_name: `Person ${person}` }, text });
      return at;
    },
    atOnce: (act) => act(),
    follow: followCalls(server, ({ method, params, status, at }) => {
      if (method !== 'sendMessage') return undefined;
      return status === 0 ? 'open' : { person: Number(params.chat_id), text: String(params.text), at };
    }),
    answersTo: (person) => server.botMessages(person).map(({ text }) => text),
    // The platform keeps messages for the bot.
    untilReachable: async () => undefined,
    // No updates are left, and the bot waits in a long poll.
    untilQuiet: async () => {
      const { updates } = server;
      await server.waitFor(() => updates.isPolled && updates.pending.length === 0, patienceMs);
    },
    meets: () => undefined,
    close: () => server.close(),
  };
}
