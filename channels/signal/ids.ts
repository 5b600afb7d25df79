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

/** This account, as the pure parts of the channel need it. */
export type Bot = {
  /** The account's ACI: what messages and mentions name it by. Its number may change, this never. */
  readonly aci: string;
  /** The path of every call. */
  readonly number: string;
  /** The bot's name in a mention: Signal's own texts hold no names. */
  readonly name: string;
  readonly account: AccountId;
};

export function botOf(known: { readonly aci: string; readonly number: string; readonly name: string }): Bot {
  const aci = known.aci.toLowerCase();
  return { ...known, aci, account: accountId(aci) };
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The ACI in its one spelling; undefined for a number, a PNI or anything else, which may change hands. */
export function readAci(text: string | null | undefined): string | undefined {
  const aci = text?.toLowerCase();
  return aci !== undefined && uuid.test(aci) ? aci : undefined;
}

/** A message is its author and the time the author gave it: two people may write within one millisecond. */
export type MessageRef = { readonly author: string; readonly timestamp: number };

export function messageIdOf({ author, timestamp }: MessageRef): MessageId {
  return messageId(`${author}:${timestamp}`);
}

/** Undefined when the text is no message id of this channel. */
export function readMessageId(id: string): MessageRef | undefined {
  const [, author, digits] = /^([^:]+):(\d{1,16})$/.exec(id) ?? [];
  const aci = readAci(author);
  const timestamp = Number(digits);
  return aci !== undefined && Number.isSafeInteger(timestamp) ? { author: aci, timestamp } : undefined;
}

/**
 * How calls name a group: the id that messages carry (base64 of 32 bytes), once more in base64. The bare
 * id would be accepted and sent to a *user name*.
 */
export function groupRecipient(internalId: string): string {
  return `group.${Buffer.from(internalId).toString('base64')}`;
}

/** Whether this is the id of a group as messages carry it; those of 16 bytes (groups V1) are refused by calls. */
export function isGroupId(id: string): boolean {
  return /^[A-Za-z0-9+/]{43}=$/.test(id) && Buffer.from(id, 'base64').length === 32;
}

/** The recipient of a call for a conversation; undefined when it is none of this channel's. */
export function recipientOf(conversation: ConversationId): string | undefined {
  if (isGroupId(conversation)) return groupRecipient(conversation);
  return readAci(conversation);
}

/** The way back to where an event came from; the only maker of this channel's routes. */
export function routeOf(bot: Bot, conversation: string, replyTo?: MessageRef): ReplyRoute {
  return {
    channel: signal,
    account: bot.account,
    conversation: conversationId(conversation),
    ...(replyTo === undefined ? {} : { replyTo: messageIdOf(replyTo) }),
  };
}
