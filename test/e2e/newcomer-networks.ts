/** The networks of a first hour: each has the owner, a stranger, a group, and a way for the owner to answer. */
import { mention } from '../platforms/discord/people.ts';
import type { StandingMessage } from '../platforms/discord/types.ts';
import type { TelegramServer } from '../platforms/telegram/server.ts';
import type { TgUser } from '../platforms/telegram/types.ts';
import type { DiscordSide } from './discord-side.ts';
import { type Person, telegramPerson } from './person.ts';
import type { SignalSide } from './signal-side.ts';

export type Town = {
  readonly name: 'telegram' | 'discord' | 'signal';
  /** The owner's permanent id there. */
  readonly ownerId: string;
  readonly owner: Person;
  readonly stranger: Person;
  readonly group: {
    /** The owner creates it and adds the bot. */
    begins(): void;
    /** The stranger mentions the bot. */
    asks(text: string): void;
    /** The bot's messages, oldest first. */
    standing(): readonly string[];
  };
  /** The owner answers the newest question: presses the button with that label, or sends the command next to it. */
  answers(label: string, where: 'direct' | 'group'): void;
};

const [ownerNumber, strangerNumber] = [4711, 4712];

export function telegramTown(server: TelegramServer, [owner, stranger]: readonly [TgUser, TgUser]): Town {
  const { chat } = server.world.addSupergroup('Team');
  server.world.state(chat.id).botStatus = 'left';
  return {
    name: 'telegram',
    ownerId: String(owner.id),
    owner: telegramPerson(server, owner.id, owner),
    stranger: telegramPerson(server, stranger.id, stranger),
    group: {
      begins: () => server.people.setsBotStatus(chat.id, owner, 'member'),
      asks: (text) =>
        void server.userSends({ chat: chat.id, from: stranger, text: `@${server.bot.username} ${text}` }),
      standing: () => server.botMessages(chat.id).map(({ text }) => text),
    },
    answers: (label, where) => {
      const place = where === 'group' ? chat.id : owner.id;
      server.people.pressesButton({ chat: place, from: owner, label });
    },
  };
}

export function discordTown({ server, user, person }: DiscordSide): Town {
  const [owner, stranger] = [user(ownerNumber), user(strangerNumber)];
  const guild = server.world.addGuild('Team', owner);
  guild.isBotIn = false;
  server.world.addMember(guild, stranger);
  const channel = server.world.addChannel(guild, 'general');
  return {
    name: 'discord',
    ownerId: owner.id,
    owner: person(ownerNumber),
    stranger: person(strangerNumber),
    group: {
      begins: () => server.places.addsBot(guild),
      asks: (text) =>
        void server.people.sends({ from: stranger, channel, text: `${mention(server.bot)} ${text}` }),
      standing: () => server.botMessages(channel.id).map(({ text }) => text),
    },
    answers: (label, where) => {
      const place = where === 'group' ? channel : server.world.dmWith(owner);
      const [message, id] = buttonIn(server.botMessages(place.id), label);
      server.people.presses(message, owner, id);
    },
  };
}

/** Returns the newest button with the label, and its message. */
function buttonIn(messages: readonly StandingMessage[], label: string): [StandingMessage, string] {
  for (const message of [...messages].reverse()) {
    const rows = message.components as readonly { components?: readonly Record<string, unknown>[] }[];
    const button = rows.flatMap(({ components = [] }) => components).find((one) => one.label === label);
    if (button) return [message, String(button.custom_id)];
  }
  throw new Error(`test error: no button “${label}”`);
}

/** Signal has no buttons, so a question ends with the command for each answer. */
export function signalTown({ server, user, person }: SignalSide): Town {
  const [owner, stranger] = [user(ownerNumber), user(strangerNumber)];
  const group = server.world.addGroup({ name: 'Team', members: [owner, stranger] });
  const bot = { ...server.account, name: 'Parley' };
  return {
    name: 'signal',
    ownerId: owner.uuid,
    owner: person(ownerNumber),
    stranger: person(strangerNumber),
    group: {
      begins: () => server.people.changesGroup(owner, group, ({ members }) => void members.push(bot)),
      asks: (text) =>
        void server.people.writes({ from: stranger, to: group, text: `@Parley ${text}`, mentioning: [bot] }),
      standing: () => server.botMessages(group).map(({ text }) => text),
    },
    answers: (label, where) => {
      const place = where === 'group' ? group : owner;
      const command = new RegExp(`^${label}: (/\\w+ \\w+)$`, 'm');
      const asked = server.botMessages(place).findLast(({ text }) => command.test(text));
      const [, text] = command.exec(asked?.text ?? '') ?? [];
      if (text === undefined) throw new Error(`test error: no command for “${label}”`);
      server.people.writes({ from: owner, ...(where === 'group' && { to: group }), text });
    },
  };
}
