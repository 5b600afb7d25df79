import type { AttachmentRef } from './attachment.ts';
import type { ConversationId, EventKey, MessageId, PeerId } from './ids.ts';
import type { ReplyRoute } from './route.ts';

/** One platform event, mapped by a channel's pure `inbound.ts`. */
export type InboundEnvelope = {
  /**
   * Unique per bot account, forever: kind + message id + version (edit date; reaction actor and
   * emoji). A redelivery has the same key, an edit a different one.
   */
  readonly eventKey: EventKey;
  /** When its sender says it was sent, ms since the epoch; only for display, since it may be any number. */
  readonly sentAt: number;
  /** When the platform's own server accepted it, ms since the epoch; absent if unknown. Limits count by it. */
  readonly receivedAt?: number;
  readonly route: ReplyRoute;
  readonly chat: Chat;
  readonly sender: Sender;
  readonly event: InboundEvent;
};

/** The conversation an event happened in. */
export type Chat = {
  readonly kind: 'dm' | 'group';
  /** The guild, community or parent channel, where the platform has one. */
  readonly parent?: ConversationId;
};

/** The author of an event. */
export type Sender = {
  /** The immutable platform id, the only basis for access decisions. */
  readonly id: PeerId;
  /** For display to the model and in lists; never for access. */
  readonly name: string;
  readonly isBot: boolean;
  /** The bot's own account. */
  readonly isSelf: boolean;
  /** Whether the sender administers this chat; absent if the platform doesn't say. */
  readonly isAdmin?: boolean;
};

/** The report of one platform event. */
export type InboundEvent =
  | InboundMessage
  | InboundEdit
  | InboundDelete
  | {
      readonly kind: 'reaction';
      readonly messageId: MessageId;
      readonly emoji: string;
      readonly isRemoved: boolean;
    }
  /**
   * Something else that a person did to a message, shown to the agent at its next turn as a reaction is. `act` is in the
   * past tense, such as “pinned”; it starts nothing.
   */
  | { readonly kind: 'act'; readonly messageId: MessageId; readonly act: string }
  /** A press of a button under one of the bot's messages; `data` is the button's id, which a client may forge. */
  | { readonly kind: 'button'; readonly messageId: MessageId; readonly data: string }
  /** The network's own stop button on a streaming answer. */
  | { readonly kind: 'stop' }
  /** The conversation has a new id; session, settings and outbox follow it. */
  | { readonly kind: 'migrated'; readonly to: ConversationId }
  /** The bot was blocked or removed (`isMember: false`), or admitted again. */
  | { readonly kind: 'membership'; readonly isMember: boolean }
  /**
   * An event Parley doesn't act on, such as a pin. Recorded and refused under `name`, and found by the id of its
   * message, if it has one.
   */
  | { readonly kind: 'unsupported'; readonly name: string; readonly messageId?: MessageId };

/** Content of a message, of a quoted one, or of an edited one. */
export type InboundWords = {
  /** The words as written; only these can be a command or a mention. */
  readonly text: string;
  /**
   * The words as the model and people read them, if they differ: Markdown with the addresses behind links, code and
   * quotations. Never read as a command or a mention.
   */
  readonly shown?: string;
  /**
   * A line each for content other than written words, such as a poll with its options, a contact, a place or an embed.
   * Always data: never read as a command or a mention.
   */
  readonly described?: readonly string[];
  /**
   * Names of the fields that this version of Parley doesn't know. They count only if the message has no other content:
   * then the model, the sender and `why` are told which they were. Core bounds and cleans them.
   */
  readonly unknownFields?: readonly string[];
};

/** A new message. */
export type InboundMessage = InboundWords & {
  readonly kind: 'message';
  readonly messageId: MessageId;
  readonly provenance: Provenance;
  readonly attachments: readonly AttachmentRef[];
  /** A native mention of the bot, or a command addressed to it by name. */
  readonly mentionsBot: boolean;
  /** A reply to one of the bot's own messages. */
  readonly repliesToBot: boolean;
  /** The message it replies to, if the network doesn't name its author; core knows the bot's own messages. */
  readonly repliesTo?: MessageId;
  readonly quote?: InboundQuote;
  /** The original author's label on a forwarded text. Untrusted, and never used to tell that it was forwarded. */
  readonly forwardedFrom?: string;
  /** Parts of one album have the same id and are joined. */
  readonly album?: string;
  /**
   * It is shown to the next turn there and starts none, even if it mentions the bot or the group is always answered: the message
   * that a thread hangs on, the outcome of a poll.
   */
  readonly startsNoRun?: true;
  /** The text fills the network's limit, so the client may have split it and more may follow. */
  readonly mayContinue?: boolean;
};

/** The message that another one quotes. */
export type InboundQuote = InboundWords & {
  readonly messageId?: MessageId;
  /** The name of its author, for display. */
  readonly author?: string;
  /** Its files, or their previews; fetched with those of the message that quotes it. */
  readonly attachments?: readonly AttachmentRef[];
};

/**
 * The new version of a message, complete. One without any content never erases the earlier version: Parley keeps that,
 * and notes that the message was edited in a way that it can't read.
 */
export type InboundEdit = InboundWords & {
  readonly kind: 'edit';
  readonly messageId: MessageId;
  readonly provenance: Provenance;
  /** All files of the new version; absent if the network doesn't say. */
  readonly attachments?: readonly AttachmentRef[];
};

export type InboundDelete = {
  readonly kind: 'delete';
  readonly messageId: MessageId;
  /**
   * The network itself has removed the message and need not say who asked for it. Absent: the deletion counts
   * only when its sender wrote the message.
   */
  readonly isVouched?: true;
};

/**
 * The origin of an event's words. Only words that senders wrote and sent themselves can be a command; all
 * others are data, even when forwarded. Anything a channel can't determine for certain is `unknown`, never `typed`.
 */
export type Provenance =
  /** Written and sent by the sender: a message, the caption of their own file, a slash command, an edit of these. */
  | 'typed'
  /** A message passed on: a forward, a snapshot, a caption that came with one. */
  | 'forwarded'
  /** The message quotes the text. */
  | 'quoted'
  /** Chosen from an inline bot's suggestions. */
  | 'inline-bot'
  /** Spoken as a channel, or copied from one. */
  | 'channel-post'
  /** A story, or words that belong to one. */
  | 'story'
  /** Sent in the sender's name by a program or at a set time. */
  | 'automated'
  | 'unknown';

/** Whether the words are typed by the sender; unknown ones are not. */
export function isTyped({ provenance }: { readonly provenance: Provenance }): boolean {
  return provenance === 'typed';
}
