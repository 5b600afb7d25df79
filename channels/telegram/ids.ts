import { type AccountId, accountId, channelId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

export const telegram = channelId('telegram');

/** This bot, as the pure parts of the channel need it. */
export type Bot = {
  readonly id: number;
  /** Without the `@`; `Identity` alone changes it. */
  username: string;
  readonly account: AccountId;
};

export function botOf(me: { readonly id: number; readonly username?: string }): Bot {
  return { id: me.id, username: me.username ?? '', account: accountId(String(me.id)) };
}

/** The cursor is the next offset, and says whose it is: the offset of another bot would hide every update. */
export function formatCursor(bot: Bot, offset: number): string {
  return `${bot.id}:${offset}`;
}

/** The offset to start from; undefined (the oldest update kept) when the cursor is none of this bot's. */
export function readCursor(bot: Bot, cursor: string | undefined): number | undefined {
  const [owner, offset] = cursor?.split(':') ?? [];
  if (owner !== String(bot.id) || offset === undefined || !/^\d{1,15}$/.test(offset)) return undefined;
  return Number(offset);
}

/** The General topic of a forum: its messages carry no thread id, and a send must not name it. */
export const generalTopic = 1;

/** Undefined when the text is not an id of Telegram's. */
export function numericId(id: string): number | undefined {
  const number = /^-?\d{1,16}$/.test(id) ? Number(id) : Number.NaN;
  return Number.isSafeInteger(number) ? number : undefined;
}

/** Private chats have the person's id, which is positive; groups and channels are negative. */
export function isPrivateChat(route: ReplyRoute): boolean {
  return !route.conversation.startsWith('-');
}
