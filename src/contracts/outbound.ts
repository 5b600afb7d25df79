import type { FormattedText } from './formatted-text.ts';
import type { MessageId, PartKey } from './ids.ts';
import type { ReplyRoute } from './route.ts';

/** One platform call, as the outbox hands it to a channel. */
export type Outbound = {
  /** The idempotency key: run, ordinal, target. Stable across restarts, so nonces are derived from it. */
  readonly key: PartKey;
  readonly route: ReplyRoute;
  readonly content: OutboundContent;
};

/** A choice under a message. A press of it comes back as an event of kind `button`, with its id as `data`. */
export type Button = {
  /** At most 64 bytes of UTF-8, which is Telegram's limit. */
  readonly id: string;
  readonly label: string;
  /** The chat command that does the same, for networks without buttons. */
  readonly command: string;
};

/** The command that a text answers, which has no row of its own. A client shows it again after a reload. */
export type AskedCommand = { readonly messageId: string; readonly name: string; readonly text: string };

/** The platform action of an outbox part. */
export type OutboundContent =
  /** At most `capabilities.text.maxLength` long. Buttons only where `capabilities.canPress`. */
  | {
      readonly kind: 'text';
      readonly text: FormattedText;
      readonly buttons?: readonly Button[];
      readonly asked?: AskedCommand;
      /** The Markdown of a block that was sent while its answer was written. Channels ignore it. */
      readonly source?: string;
    }
  | {
      readonly kind: 'edit';
      readonly messageId: MessageId;
      readonly text: FormattedText;
      /** Empty: the message loses its buttons. Absent: it has none. */
      readonly buttons?: readonly Button[];
      /** The message shows files, so the text is their caption. */
      readonly isCaption?: true;
    }
  | { readonly kind: 'delete'; readonly messageId: MessageId }
  | {
      readonly kind: 'reaction';
      readonly messageId: MessageId;
      readonly emoji: string;
      /** Takes the bot's own reaction back. */
      readonly isRemoved?: true;
    }
  /** Something that only some networks can do, asked for by one of the channel's own tools. */
  | {
      readonly kind: 'action';
      /** The tool's name. */
      readonly tool: string;
      /** JSON that the channel has made and parses again. */
      readonly input: unknown;
      /** One line for `why` and lists, for example "poll: Lunch?". */
      readonly summary: string;
      /** The message that it changes. Repeating such an action has the same result. */
      readonly messageId?: MessageId;
      /** It becomes a message, so a repeated send is recognized like any other. Any other action is made once. */
      readonly isMessage?: true;
    }
  | OutboundMedia;

/** A file to send. */
export type OutboundFile = {
  /** Absolute for a channel. A row names a file in the media folder, which may be moved with the data folder. */
  readonly path: string;
  readonly mimeType: string;
  readonly name: string;
};

/** A file, or several that are one message: an album, only where `capabilities.media.album` allows it. */
export type OutboundMedia = {
  readonly kind: 'media';
  readonly caption?: FormattedText;
  /** Ogg Opus, to be shown as a voice message if the network has them. */
  readonly asVoice?: true;
} & (OutboundFile | { readonly files: readonly OutboundFile[] });

/** Returns the files of a message, one or more, in order. */
export function filesOf(media: OutboundMedia): readonly OutboundFile[] {
  return 'files' in media ? media.files : [media];
}

/** Names a file of a part for clients, which show each one as a message: the first has the part's key. */
export function fileMessageId(partKey: string, index: number): string {
  return index === 0 ? partKey : `${partKey}#${index}`;
}

/** Reads such a name. */
export function readFileMessageId(id: string): { readonly partKey: string; readonly index: number } {
  const [, partKey = id, index = '0'] = /^(.+)#([1-9]\d?)$/s.exec(id) ?? [];
  return { partKey, index: Number(index) };
}

/** Returns a message with these files in place of its own. */
export function withFiles(media: OutboundMedia, files: readonly OutboundFile[]): OutboundMedia {
  const { kind, caption, asVoice } = media;
  const common = { kind, ...(caption && { caption }), ...(asVoice && { asVoice }) };
  const [first, ...more] = files;
  return first !== undefined && more.length === 0 ? { ...common, ...first } : { ...common, files };
}

/** Tells a group that a run failed. Where it is refused, a line says the same. */
export const failedReaction = '⚠';

/** The result of one platform call. */
export type SendResult =
  /** The platform confirmed it; `receipts` are the ids of the resulting messages (may be empty). */
  | { readonly kind: 'sent'; readonly receipts: readonly MessageId[] }
  /**
   * Certainly not delivered: safe to repeat. `afterMs` is the wait that the platform asks for, or 0;
   * core waits between 1 s and 5 min before it tries again. `isOutage`: the
   * platform couldn't be reached at all, so attempts aren't counted.
   */
  | { readonly kind: 'retry'; readonly afterMs: number; readonly reason: string; readonly isOutage?: boolean }
  /**
   * The connection ended before the answer, so the message may or may not have arrived. Core repeats it only while
   * the platform recognizes the repeat (`capabilities.repeatSafeMs`).
   */
  | { readonly kind: 'unknown'; readonly reason: string }
  /** Certainly not delivered, and repeating it wouldn't help. */
  | { readonly kind: 'failed'; readonly failure: SendFailure; readonly reason: string };

/** Why a platform refused a part for good. */
export type SendFailure =
  /** The platform couldn't parse the markup; core repeats it as plain text. */
  | { readonly kind: 'markup' }
  /** Blocked, removed or gone: the conversation is unreachable. */
  | { readonly kind: 'unreachable' }
  /** The conversation lives on under another id; core follows. */
  | { readonly kind: 'migrated'; readonly to: ReplyRoute['conversation'] }
  /** The thread is gone; core repeats it without one. */
  | { readonly kind: 'thread-gone' }
  | { readonly kind: 'unauthorised' }
  | { readonly kind: 'rejected' };
