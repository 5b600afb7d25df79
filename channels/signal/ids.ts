import {
  type AccountId,
  accountId,
  type ConversationId,
  channelId,
  conversationId,
  type MessageId,
  messageId,
} from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

export const signal = channelId('signal');

/** The account, as far as the pure parts of the channel need it. */
export type Bot = {
  /** The account's ACI, by which messages and mentions refer to it. Its number may change; this never does. */
  readonly aci: string;
  /** Part of every call's path. */
  readonly number: string;
  /** The bot's name in a mention, since Signal's texts contain no names. */
  readonly name: string;
  readonly account: AccountId;
};

export function botOf(known: { readonly aci: string; readonly number: string; readonly name: string }): Bot {
  const aci = known.aci.toLowerCase();
  return { ...known, aci, account: accountId(aci) };
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns the ACI in its canonical spelling; undefined for a number, a PNI or anything else that may change hands. */
export function readAci(text: string | null | undefined): string | undefined {
  const aci = text?.toLowerCase();
  return aci !== undefined && uuid.test(aci) ? aci : undefined;
}

/** Identifies a message by its author and the author's timestamp: two people may write in the same millisecond. */
export type MessageRef = { readonly author: string; readonly timestamp: number };

export function messageIdOf({ author, timestamp }: MessageRef): MessageId {
  return messageId(`${author}:${timestamp}`);
}

/** Returns undefined if the text isn't a message id of this channel. */
export function readMessageId(id: string): MessageRef | undefined {
  const [, author, digits] = /^([^:]+):(\d{1,16})$/.exec(id) ?? [];
  const aci = readAci(author);
  const timestamp = Number(digits);
  return aci !== undefined && Number.isSafeInteger(timestamp) ? { author: aci, timestamp } : undefined;
}

/**
 * Returns how calls name a group: the id in messages (base64 of 32 bytes), encoded in base64 again. The bare id would
 * be accepted, and the message sent to a *user name*.
 */
export function groupRecipient(internalId: string): string {
  return `group.${Buffer.from(internalId).toString('base64')}`;
}

/** Says whether this is a group id as in messages. Calls refuse those of 16 bytes (groups V1), which don't count. */
export function isGroupId(id: string): boolean {
  return /^[A-Za-z0-9+/]{43}=$/.test(id) && Buffer.from(id, 'base64').length === 32;
}

/** Returns the recipient of a call for a conversation; undefined if it isn't one of this channel's. */
export function recipientOf(conversation: ConversationId): string | undefined {
  if (isGroupId(conversation)) return groupRecipient(conversation);
  return readAci(conversation);
}

/** Returns the reply address of an event; all routes of this channel are created here. */
export function routeOf(bot: Bot, conversation: string, replyTo?: MessageRef): ReplyRoute {
  return {
    channel: signal,
    account: bot.account,
    conversation: conversationId(conversation),
    ...(replyTo === undefined ? {} : { replyTo: messageIdOf(replyTo) }),
  };
}
