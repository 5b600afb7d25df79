import { type AccountId, accountId, channelId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

export const telegram = channelId('telegram');

/** The bot, as far as the pure parts of the channel need it. */
export type Bot = {
  readonly id: number;
  /** Without the `@`; only `Identity` changes it. */
  username: string;
  readonly account: AccountId;
};

export function botOf(me: { readonly id: number; readonly username?: string }): Bot {
  return { id: me.id, username: me.username ?? '', account: accountId(String(me.id)) };
}

/** Formats the cursor: the next offset, and whose it is, because another bot's offset would hide every update. */
export function formatCursor(bot: Bot, offset: number): string {
  return `${bot.id}:${offset}`;
}

/** Returns the offset to start from; undefined (the oldest update kept) if the cursor isn't this bot's. */
export function readCursor(bot: Bot, cursor: string | undefined): number | undefined {
  const [owner, offset] = cursor?.split(':') ?? [];
  if (owner !== String(bot.id) || offset === undefined || !/^\d{1,15}$/.test(offset)) return undefined;
  return Number(offset);
}

/** The General topic of a forum: its messages have no thread id, and a send must not name it. */
export const generalTopic = 1;

/** Returns undefined if the text isn't a Telegram id. */
export function numericId(id: string): number | undefined {
  const number = /^-?\d{1,16}$/.test(id) ? Number(id) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

/** Private chats have the person's id, which is positive; ids of groups and channels are negative. */
export function isPrivateChat(route: ReplyRoute): boolean {
  return !route.conversation.startsWith('-');
}
