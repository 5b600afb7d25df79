/** The parts of Discord's objects that this server creates and reads. Field names are the platform's. */

/** An object as sent over the wire. */
export type Wire = Readonly<Record<string, unknown>>;

export type DiscordUser = {
  readonly id: string;
  readonly username: string;
  readonly global_name: string | null;
  readonly bot?: true;
};

export const channelTypes = {
  text: 0,
  dm: 1,
  voice: 2,
  announcement: 5,
  announcementThread: 10,
  publicThread: 11,
  privateThread: 12,
  forum: 15,
} as const;
export type ChannelType = (typeof channelTypes)[keyof typeof channelTypes];

/** Message types: people's messages are 0 or 19; the platform writes the others itself. */
export const messageTypes = {
  default: 0,
  memberJoined: 7,
  threadCreated: 18,
  reply: 19,
  chatInputCommand: 20,
  threadStarter: 21,
} as const;

/** Bits of a message's `flags`. */
export const messageFlags = {
  hasThread: 32,
  ephemeral: 64,
  loading: 128,
  isVoiceMessage: 1 << 13,
  componentsV2: 1 << 15,
} as const;

/** Whom a message pings, after `allowed_mentions` has been applied. */
export type Mentioned = {
  /** @everyone or @here. */
  readonly isEveryone: boolean;
  readonly roles: readonly string[];
  /** Includes the author of the message being replied to if the reply pings. */
  readonly users: readonly string[];
};

export type StoredFile = {
  readonly id: string;
  readonly name: string;
  readonly mimeType: string;
  /** The size that the message states; the stream may differ. */
  readonly sizeBytes: number;
  readonly description?: string;
  /** Further fields of the attachment object: width, height, duration_secs, waveform … */
  readonly fields?: Wire;
  readonly bytes: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
};

/** A message that is in a channel now, with its earlier texts. */
export type StandingMessage = {
  readonly id: string;
  readonly channelId: string;
  readonly type: number;
  readonly author: DiscordUser;
  /** The current text. */
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly editedAt: number | undefined;
  /** The text before each edit, oldest first. */
  readonly history: readonly { readonly text: string; readonly at: number }[];
  readonly replyTo: string | undefined;
  readonly mentioned: Mentioned;
  readonly files: readonly StoredFile[];
  /** Who set which reaction; the key is the emoji, or `name:id` for a guild's own. */
  readonly reactions: ReadonlyMap<string, ReadonlySet<string>>;
  readonly nonce: string | number | undefined;
  readonly flags: number;
  readonly embeds: readonly unknown[];
  readonly components: readonly unknown[];
  /** Set if only one person sees it; such a message is in no list. */
  readonly ephemeralFor: string | undefined;
  /** Further fields of the message object: poll, sticker_items, message_snapshots, interaction_metadata … */
  readonly fields: Wire;
};

/** One call of the REST API, in order of arrival. */
export type Call = {
  readonly method: string;
  /** The path with placeholders for its ids: `POST /channels/:channel/messages`. Empty if there is no such route. */
  readonly route: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Wire;
  readonly files: readonly { readonly name: string; readonly sizeBytes: number }[];
  readonly at: number;
  /** 0 while it is being answered, or if the connection was cut with nothing applied. */
  status: number;
  /** The code in the body of a refusal. */
  code?: number;
  reason?: string;
  /** The id of the message that it created or changed. */
  messageId?: string;
  /** `enforce_nonce` found an earlier message, so none was created. */
  isRepeat?: true;
  /** A fault that a test requested, not the caller's mistake. */
  isFault?: true;
  /** False if the connection was cut before the answer was sent. */
  answered: boolean;
};

/** A wrong call or payload that Discord would refuse; a clean run has none. */
export type Refusal = {
  readonly what: string;
  readonly status: number;
  readonly code: number;
  readonly reason: string;
};

/** A message of the bot, or an edit of one, that pings somebody. */
export type Ping = Mentioned & {
  readonly messageId: string;
  readonly channelId: string;
  readonly by: 'send' | 'edit';
};

export type Typing = { readonly channelId: string; readonly at: number };
