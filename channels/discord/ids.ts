import { createHash } from 'node:crypto';
import { SnowflakeUtil } from 'discord.js';
import {
  type AccountId,
  accountId,
  channelId,
  type MessageId,
  messageId,
  type PartKey,
} from '#contracts/ids.ts';

export const discord = channelId('discord');

/** The bot, as far as the pure parts of the channel need it. */
export type Bot = {
  readonly id: string;
  /** For display; only `Receiver` changes it. */
  name: string;
  readonly account: AccountId;
};

export function botOf(me: { readonly id: string; readonly username: string }): Bot {
  return { id: me.id, name: me.username, account: accountId(me.id) };
}

/** Says whether the text is a Discord id ("snowflake"): a decimal number whose high bits are its creation time. */
export function isSnowflake(text: string): boolean {
  return /^\d{1,20}$/.test(text) && (text.length < 20 || text <= largestId);
}

/** Ids have 64 bits. */
const largestId = String(2n ** 64n - 1n);

/** Returns when the id was created, ms since 1970. */
export function timeOf(snowflake: string): number {
  return SnowflakeUtil.timestampFrom(snowflake);
}

/** Returns the smallest id of that moment. */
export function snowflakeAt(ms: number): string {
  const timestamp = Math.max(Math.floor(ms), Number(SnowflakeUtil.epoch));
  return String(SnowflakeUtil.generate({ timestamp, increment: 0n, workerId: 0n, processId: 0n }));
}

/** Returns false for an id that can't have been given yet: a history read from there on would stay empty. */
export function isGiven(snowflake: string, now: number): boolean {
  return timeOf(snowflake) <= now + furthestAheadMs;
}

/** This machine's clock may be this far behind, ms. */
const furthestAheadMs = 24 * 3_600_000;

export function isLater(a: string, b: string): boolean {
  return a.length === b.length ? a > b : a.length > b.length;
}

export function laterSnowflake(a: string, b: string): string {
  return isLater(b, a) ? b : a;
}

/** The message id of a slash command, for which the person has sent no message. */
export const interactionMessage = {
  format: (id: string): MessageId => messageId(`interaction-${id}`),
  /** The interaction's id; undefined for an ordinary message. */
  read: (id: string | undefined): string | undefined => /^interaction-(\d{1,20})$/.exec(id ?? '')?.[1],
} as const;

/** Returns at most 25 characters, always the same for one part, by which Discord recognizes a repeat. */
export function nonceOf(key: PartKey): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 24);
}

/**
 * Formats the cursor: an id before which nothing was missed anywhere, and the bot it belongs to. Conversations that
 * have no anchor yet are read from there.
 */
export function formatCursor(bot: Bot, floor: string): string {
  return `${bot.id}:${floor}`;
}

export function readCursor(bot: Bot, cursor: string | undefined): string | undefined {
  const [owner, floor] = cursor?.split(':') ?? [];
  return owner === bot.id && floor !== undefined && isSnowflake(floor) ? floor : undefined;
}
