import type { Sender } from '#contracts/envelope.ts';
import { peerId } from '#contracts/ids.ts';
import type { Bot } from './ids.ts';
import type { User } from './payload-schema.ts';

/** The sender of an event that names none. No allow-list can hold it. */
export const nobody: Sender = { id: peerId('nobody'), name: '', isBot: false, isSelf: false };

export type Speaker = {
  readonly user: User;
  readonly nick?: string | null | undefined;
  /** Writes through a webhook: no account of a person. */
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

/** The name people see: of the guild, else of the profile, else the account's. */
export function nameOf(user: User, nick?: string | null): string {
  return cleanText(nick || user.global_name || user.username);
}

/** Text that a database and a model can hold: no NUL, no half of a surrogate pair. Keeps the length. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\ufffd');
}
