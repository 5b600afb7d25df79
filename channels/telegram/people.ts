import { cleanText } from '#channel-kit/clean-text.ts';
import type { Chat, Sender } from '#contracts/envelope.ts';
import { peerId } from '#contracts/ids.ts';
import type { Origin } from './content-schema.ts';
import type { TelegramChat, User } from './fields.ts';
import type { Bot } from './ids.ts';

export function senderOf(user: User, bot: Bot): Sender {
  return {
    id: peerId(String(user.id)),
    name: nameOf(user),
    isBot: user.is_bot,
    isSelf: user.id === bot.id,
  };
}

/**
 * Returns the sender of a message written as a chat. Its `from` is a stand-in account of Telegram's, the same for
 * everyone, so the chat's id identifies the sender. Only administrators of a group can write as the group itself.
 */
export function anonymousSender(speaker: TelegramChat, place: TelegramChat, signature?: string): Sender {
  const title = nameOf(speaker);
  return {
    id: peerId(`chat:${speaker.id}`),
    name: signature ? cleanText(`${title} (${signature})`) : title,
    isBot: false,
    isSelf: false,
    ...(speaker.id === place.id ? { isAdmin: true } : {}),
  };
}

export function chatOf(chat: TelegramChat): Chat {
  return { kind: chat.type === 'private' ? 'dm' : 'group' };
}

/** Returns the label of a forwarded or quoted author: untrusted, for display. */
export function originName(origin: Origin): string {
  const { sender_user: user, sender_user_name: hidden, sender_chat: sender, chat } = origin;
  const speaker = user ?? sender ?? chat;
  return speaker === undefined ? cleanText(hidden ?? origin.type) : nameOf(speaker);
}

type NameFields = {
  readonly [Field in 'title' | 'first_name' | 'last_name' | 'username']?: string | undefined;
};

export function nameOf({ title, first_name: first, last_name: last, username }: NameFields): string {
  const full = title ?? [first, last].filter(Boolean).join(' ');
  return cleanText(full || (username ?? ''));
}
