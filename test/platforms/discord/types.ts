/** The parts of Discord's objects that this server makes and reads. Field names are the platform's. */

/** An object as it goes over the wire. */
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

/** Message types: what people write is 0 or 19, the rest the platform writes itself. */
export const messageTypes = {
  default: 0,
  memberJoined: 7,
  threadCreated: 18,
  reply: 19,
  chatInputCommand: 20,
  threadStarter: 21,
} as const;

/** Bits of a message's `flags`. */
export const messageFlags = { hasThread: 32, ephemeral: 64, loading: 128, componentsV2: 1 << 15 } as const;

/** Whom a message pings, after `allowed_mentions`. */
export type Mentioned = {
  /** @everyone or @here. */
  readonly isEveryone: boolean;
  readonly roles: readonly string[];
  /** The author of the message that is replied to is among them when the reply pings. */
  readonly users: readonly string[];
};

export type StoredFile = {
  readonly id: string;
  readonly name: string;
  readonly mimeType: string;
  /** What the message says; the stream may say otherwise. */
  readonly sizeBytes: number;
  readonly description?: string;
  /** Further fields of the attachment object: width, height, duration_secs, waveform … */
  readonly fields?: Wire;
  readonly bytes: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
};

/** A message that stands in a channel, with what it said before. */
export type StandingMessage = {
  readonly id: string;
  readonly channelId: string;
  readonly type: number;
  readonly author: DiscordUser;
  /** As it stands now. */
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly editedAt: number | undefined;
  /** What stood there before each edit, oldest first. */
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
  /** Set for what only one person sees; such a message is in no list. */
  readonly ephemeralFor: string | undefined;
  /** Further fields of the message object: poll, sticker_items, message_snapshots, interaction_metadata … */
  readonly fields: Wire;
};

/** One call of the REST API, in order of arrival. */
export type Call = {
  readonly method: string;
  /** The path with names for its ids: `POST /channels/:channel/messages`. Empty when there is no such route. */
  readonly route: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Wire;
  readonly files: readonly { readonly name: string; readonly sizeBytes: number }[];
  readonly at: number;
  /** 0 while it is being answered or when the connection was cut with nothing applied. */
  status: number;
  /** The code in the body of a refusal. */
  code?: number;
  reason?: string;
  /** The id of the message it made or changed. */
  messageId?: string;
  /** `enforce_nonce` found an earlier message: nothing was made. */
  isRepeat?: true;
  /** A fault that a test asked for, not the caller's mistake. */
  isFault?: true;
  /** False when the connection was cut before the answer was out. */
  answered: boolean;
};

/** Something that was called wrongly and that Discord would refuse; a clean run has none. */
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
