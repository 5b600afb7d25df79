/** The parts of signal-cli's and signal-cli-rest-api's JSON that this server creates and reads. */

export type Mode = 'normal' | 'native' | 'json-rpc';

/** A person with a Signal account. `number` null: hidden from the bot, which then only knows the uuid. */
export type Person = {
  readonly name: string;
  readonly uuid: string;
  readonly number: string | null;
  readonly username?: string;
};

/** An account on this server: its number is the path of its calls. */
export type Account = Person & { readonly number: string };

export type Group = {
  /** Base64 of 32 bytes, as in messages. */
  readonly internalId: string;
  /** `group.` and base64 of `internalId`, as in calls. */
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

/** `start` and `length` in UTF-16 code units; received messages have U+FFFC there. */
export type MentionRange = { readonly uuid: string; readonly start: number; readonly length: number };

export type StoredAttachment = {
  readonly id: string;
  readonly contentType: string;
  readonly fileName: string | null;
  readonly bytes: Uint8Array;
};

export type Quote = { readonly timestamp: number; readonly authorUuid: string; readonly text: string };

/** The place of a message: a group, or the person at the other end (for a note to self: oneself). */
export type Place = { readonly group: Group } | { readonly person: Person };

/** A message that is in a conversation, with edits applied. */
export type StandingMessage = {
  /** The account from whose side `place` is seen. */
  readonly account: Account;
  readonly place: Place;
  /** Milliseconds; together with `from`, the message's identity. Edits keep it. */
  readonly timestamp: number;
  readonly from: Person;
  /** Whether it was sent by a call to this server, and not by the owner on another device. */
  readonly isByCall: boolean;
  text: string;
  styles: readonly StyleRange[];
  mentions: readonly MentionRange[];
  readonly quote: Quote | undefined;
  readonly attachments: readonly StoredAttachment[];
  readonly sticker: string | undefined;
  readonly expiresInSeconds: number;
  /** The text before each edit and the timestamps of the edits, oldest first. */
  readonly history: { readonly text: string; readonly editedAt: number }[];
  isDeleted: boolean;
  /** Emoji by the reacting person's uuid. */
  readonly reactions: Map<string, string>;
  /** Who has read it, according to receipts. */
  readonly readBy: Set<string>;
};

/** One message from signal-cli: an envelope, or the report of one that couldn't be read. */
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
  /** The body as JSON, or as text if it isn't JSON. */
  readonly body: unknown;
  readonly at: number;
  /** 0 while it is being answered, or if it never is. */
  status: number;
  answer: string;
  /** False if the connection was cut before the answer was sent. */
  answered: boolean;
  /** The timestamp of the message that it sent, edited or deleted. */
  timestamp?: number;
  /** The test's fault that affected it. */
  fault?: string;
};

/**
 * A wrong call: refused, or accepted (`status` 2xx) with another effect than its caller can have meant. `call`
 * undefined: something wrong was sent on a socket.
 */
export type Refusal = { readonly call: Call | undefined; readonly status: number; readonly why: string };

/** A refusal in the server's words. */
export class ApiError extends Error {
  readonly status: number;
  /** JSON labeled text/plain. */
  readonly isPlain: boolean;
  /** Not JSON at all, only the message. */
  readonly isPage: boolean;
  /** Text that precedes the JSON. */
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
