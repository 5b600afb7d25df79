import { cleanText } from '#channel-kit/clean-text.ts';
import type { Sender } from '#contracts/envelope.ts';
import { peerId } from '#contracts/ids.ts';
import type { Bot } from './ids.ts';
import type { User } from './payload-schema.ts';

export type Speaker = {
  readonly user: User;
  readonly nick?: string | null | undefined;
  /** Writes through a webhook, so it isn't a person's account. */
  readonly isWebhook?: boolean;
  readonly isAdmin?: boolean | undefined;
};

export function senderOf({ user, nick, isWebhook = false, isAdmin }: Speaker, bot: Bot): Sender {
  return {
    id: peerId(user.id),
    name: nameOf(user, nick),
    isBot: user.bot === true || isWebhook,
    isSelf: user.id === bot.id,
    ...(isAdmin === undefined ? {} : { isAdmin }),
  };
}

/** Returns the name that people see: the guild's nickname, else the profile's name, else the account's. */
function nameOf(user: User, nick?: string | null): string {
  return cleanText(nick || user.global_name || user.username);
}
