import type { TelegramServer } from '../platforms/telegram/server.ts';
import type { TgUser } from '../platforms/telegram/types.ts';
import { countTold, findBreaches } from './conservation.ts';

/** Several people who write to the bot at the same time, and what they may expect. */
export type Crowd = {
  /** Everybody sends one more message, each with a text of its own. */
  speaks(): void;
  /** How many messages were sent. */
  count(): number;
  /** How many of them have their answer. */
  answered(): number;
  /** Every breach, at rest: of the conservation law, or a text that was not answered exactly once. */
  breaches(dataDir: string): readonly string[];
};

/** Needs a model that repeats what it is told (the local one does), one run per message, and open DMs. */
export function gatherCrowd(telegram: TelegramServer, size: number): Crowd {
  const people = Array.from({ length: size }, (_, index): TgUser => {
    return { id: 1001 + index, is_bot: false, first_name: `Person ${index}` };
  });
  const sent: { readonly chat: number; readonly text: string }[] = [];
  const timesAnswered = ({ chat, text }: { chat: number; text: string }) =>
    telegram.botMessages(chat).filter((message) => message.text === `You said: ${text}`).length;
  return {
    speaks: () => {
      for (const from of people) {
        const text = `${from.first_name} says no ${sent.length}.`;
        sent.push({ chat: from.id, text });
        telegram.userSends({ from, text });
      }
    },
    count: () => sent.length,
    answered: () => sent.filter((message) => timesAnswered(message) > 0).length,
    breaches: (dataDir) => {
      const told = countTold(
        dataDir,
        sent.map(({ text }) => text),
      );
      return [
        ...findBreaches(dataDir),
        ...sent.flatMap((message, index) => [
          ...(timesAnswered(message) === 1
            ? []
            : [`answered ${timesAnswered(message)} times: ${message.text}`]),
          ...(told[index] === 1 ? [] : [`${told[index]} times in the transcript: ${message.text}`]),
        ]),
      ];
    },
  };
}

/** Settings for a crowd. */
export const forCrowd = {
  access: { dmPolicy: 'open' },
  queue: { dm: { mode: 'followup', cap: 200 } },
} as const;
