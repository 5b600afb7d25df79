import { mention } from '../platforms/discord/people.ts';
import type { StandingMessage as TelegramMessage } from '../platforms/telegram/types.ts';
import { discordOf } from './discord-side.ts';
import { signalOf } from './signal-side.ts';
import type { Stage } from './stage.ts';

/** A group of the person 501 with the bot. */
export type Room = {
  /** Mentions the bot. Returns the message's id as people see it. */
  asks(question: string): string;
  says(text: string): void;
  standing(): readonly string[];
};

/** Opens the groups on Telegram, Discord and Signal. */
export function roomsOf(stage: Stage): readonly Room[] {
  const { telegram } = stage;
  const { server: discord, user } = discordOf(stage);
  const { server: signal, user: signalUser } = signalOf(stage);

  const chat = telegram.world.addSupergroup('Team').chat.id;
  const channel = discord.world.addChannel(discord.world.addGuild('Team', user(501)), 'general');
  const ada = signalUser(501);
  const team = signal.world.addGroup({ name: 'Team', members: [ada, signal.account] });
  const bot = { ...signal.account, name: 'Parley' };
  const from = { id: 501, is_bot: false, first_name: 'Person 501' };
  return [
    {
      asks: (question) =>
        telegramIdOf(telegram.userSends({ chat, from, text: `@${telegram.bot.username} ${question}` })),
      says: (text) => void telegram.userSends({ chat, from, text }),
      standing: () => telegram.botMessages(chat).map(({ text }) => text),
    },
    {
      asks: (question) =>
        discord.people.sends({ from: user(501), channel, text: `${mention(discord.bot)} ${question}` }).id,
      says: (text) => void discord.people.sends({ from: user(501), channel, text }),
      standing: () => discord.botMessages(channel.id).map(({ text }) => text),
    },
    {
      asks: (question) =>
        signalIdOf(
          signal.people.writes({ from: ada, to: team, text: `@Parley ${question}`, mentioning: [bot] }),
        ),
      says: (text) => void signal.people.writes({ from: ada, to: team, text }),
      standing: () => signal.botMessages(team).map(({ text }) => text),
    },
  ];
}

/** Telegram counts messages within a chat. */
export function telegramIdOf({ message, messageId }: TelegramMessage) {
  return `telegram:${message.chat.id}/${messageId}`;
}

/** Names a message as Signal does. */
export function signalIdOf({
  from,
  timestamp,
}: {
  readonly from: { readonly uuid: string };
  timestamp: number;
}) {
  return `${from.uuid}:${timestamp}`;
}
