/** The parts of signal-cli's and signal-cli-rest-api's JSON that this server makes and reads. */

export type Mode = 'normal' | 'native' | 'json-rpc';

/** Somebody with a Signal account. `number` null: hidden from the bot, which then knows the uuid alone. */
export type Person = {
  readonly name: string;
  readonly uuid: string;
  readonly number: string | null;
  readonly username?: string;
};

/** An account that this server holds: its number is the path of its calls. */
export type Account = Person & { readonly number: string };

export type Group = {
  /** Base64 of 32 bytes: what messages say. */
  readonly internalId: string;
  /** `group.` and base64 of `internalId`: what calls say. */
  readonly id: string;
  name: string;
  description: string;
  revision: number;
  readonly members: Person[];
  readonly admins: Set<string>;
  expiresInSeconds: number;
  /** Only administrators may write. */
  isAnnouncement: boolean;
};

export type TextStyle = 'BOLD' | 'ITALIC' | 'SPOILER' | 'STRIKETHROUGH' | 'MONOSPACE';

/** `start` and `length` in UTF-16 code units. */
export type StyleRange = { readonly style: TextStyle; readonly start: number; readonly length: number };

/** `start` and `length` in UTF-16 code units; U+FFFC stands there in messages that arrive. */
export type MentionRange = { readonly uuid: string; readonly start: number; readonly length: number };

export type StoredAttachment = {
  readonly id: string;
  readonly contentType: string;
  readonly fileName: string | null;
  readonly bytes: Uint8Array;
};

export type Quote = { readonly timestamp: number; readonly authorUuid: string; readonly text: string };

/** Where a message stands: a group, or the person at the other end (for a note to self: oneself). */
export type Place = { readonly group: Group } | { readonly person: Person };

/** A message that stands in a conversation, edits applied. */
export type StandingMessage = {
  /** The account from whose side `place` is seen. */
  readonly account: Account;
  readonly place: Place;
  /** Milliseconds; with `from` it is the message's identity. Edits keep it. */
  readonly timestamp: number;
  readonly from: Person;
  /** By a call of this server; what the owner writes on another device is not. */
  readonly isByCall: boolean;
  text: string;
  styles: readonly StyleRange[];
  mentions: readonly MentionRange[];
  readonly quote: Quote | undefined;
  readonly attachments: readonly StoredAttachment[];
  readonly sticker: string | undefined;
  readonly expiresInSeconds: number;
  /** What stood there before each edit, and the timestamps of the edits, oldest first. */
  readonly history: { readonly text: string; readonly editedAt: number }[];
  isDeleted: boolean;
  /** Emoji by the reactor's uuid. */
  readonly reactions: Map<string, string>;
  /** Who read it, by receipt. */
  readonly readBy: Set<string>;
};

/** One message of signal-cli: an envelope, or what became of one that could not be read. */
export type Notification = {
  readonly account: string;
  readonly envelope?: Readonly<Record<string, unknown>>;
  readonly exception?: { readonly message: string; readonly type: string };
};

/** One HTTP call, in order of arrival. */
export type Call = {
  readonly method: string;
  /** Decoded, without the query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The body as JSON, or the text if it is none. */
  readonly body: unknown;
  readonly at: number;
  /** 0 while it is being answered, or if it never is. */
  status: number;
  answer: string;
  /** False when the connection was cut before the answer was out. */
  answered: boolean;
  /** The timestamp of the message that it sent, edited or deleted. */
  timestamp?: number;
  /** The fault of the test that met it. */
  fault?: string;
};

/**
 * A call that is wrong: refused, or accepted (`status` 2xx) while something else comes of it than its
 * caller can have meant. `call` undefined: something wrong was sent on a socket.
 */
export type Refusal = { readonly call: Call | undefined; readonly status: number; readonly why: string };

/** A refusal as the server words it. */
export class ApiError extends Error {
  readonly status: number;
  /** JSON that is called text/plain. */
  readonly isPlain: boolean;
  /** Not JSON at all: the message alone. */
  readonly isPage: boolean;
  /** What stands before the JSON. */
  readonly prefix: string;
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(
    status: number,
    message: string,
    options: Partial<Pick<ApiError, 'isPlain' | 'isPage' | 'prefix' | 'fields'>> = {},
  ) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.isPlain = options.isPlain ?? false;
    this.isPage = options.isPage ?? false;
    this.prefix = options.prefix ?? '';
    this.fields = options.fields ?? {};
  }
}

export const badRequest = (what: string) => new ApiError(400, what);
