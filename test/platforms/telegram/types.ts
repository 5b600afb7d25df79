/** The parts of the Bot API's objects that this server creates and reads. Field names are the platform's. */

export type TgUser = {
  readonly id: number;
  readonly is_bot: boolean;
  readonly first_name: string;
  readonly last_name?: string;
  readonly username?: string;
};

export type TgChatType = 'private' | 'group' | 'supergroup' | 'channel';

export type TgChat = {
  readonly id: number;
  readonly type: TgChatType;
  readonly title?: string;
  readonly first_name?: string;
  readonly last_name?: string;
  readonly username?: string;
  readonly is_forum?: true;
};

export type TgEntity = {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly url?: string;
  readonly language?: string;
  readonly user?: TgUser;
};

/** Buttons under a message. */
export type Keyboard = {
  readonly inline_keyboard: readonly (readonly {
    readonly text: string;
    readonly callback_data?: string;
  }[])[];
};

/** A message as sent over the wire; fields other than the common ones vary with its content. */
export type TgMessage = {
  readonly message_id: number;
  readonly date: number;
  readonly chat: TgChat;
  readonly from?: TgUser;
  readonly sender_chat?: TgChat;
  readonly message_thread_id?: number;
  readonly is_topic_message?: true;
  readonly edit_date?: number;
  readonly text?: string;
  readonly entities?: readonly TgEntity[];
  readonly caption?: string;
  readonly caption_entities?: readonly TgEntity[];
  readonly reply_to_message?: TgMessage;
  readonly media_group_id?: string;
  readonly reply_markup?: Keyboard;
  readonly [field: string]: unknown;
};

export type TgUpdate = { readonly update_id: number } & { readonly [kind: string]: unknown };

export type MemberStatus = 'creator' | 'administrator' | 'member' | 'restricted' | 'left' | 'kicked';

/** A message that is in a chat now, with its earlier texts. */
export type StandingMessage = {
  readonly messageId: number;
  readonly from: TgUser | undefined;
  /** The current text or caption. */
  readonly text: string;
  readonly entities: readonly TgEntity[];
  readonly threadId: number | undefined;
  readonly replyTo: number | undefined;
  readonly at: number;
  /** The text before each edit, oldest first. */
  readonly history: readonly { readonly text: string; readonly at: number }[];
  /** The bot's reaction, if it set one. */
  readonly botReaction: string | undefined;
  readonly file: StoredFile | undefined;
  readonly message: TgMessage;
};

export type StoredFile = {
  readonly id: string;
  readonly path: string;
  readonly name: string;
  readonly mimeType: string;
  /** The size that getFile states; the stream may differ. */
  readonly sizeBytes: number;
  /** The size that the download's header states, if it has one. */
  readonly statedBytes?: string;
  readonly bytes: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
};

/** One call of a method, in order of arrival. */
export type Call = {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly at: number;
  /**
   * 200, or the code of the refusal. 0 while it is being answered, or if the connection was cut with nothing applied.
   */
  status: number;
  description?: string;
  /** The id of the message that it created or changed. */
  messageId?: number;
  /** False if the connection was cut before the answer was sent. */
  answered: boolean;
};

/** A refusal in the platform's words. */
export class ApiError extends Error {
  readonly code: number;
  readonly parameters: Readonly<Record<string, unknown>> | undefined;

  constructor(code: number, description: string, parameters?: Readonly<Record<string, unknown>>) {
    super(description);
    this.name = 'ApiError';
    this.code = code;
    this.parameters = parameters;
  }
}

export const badRequest = (what: string) => new ApiError(400, `Bad Request: ${what}`);
