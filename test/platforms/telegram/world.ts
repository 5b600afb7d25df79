import {
  ApiError,
  badRequest,
  type MemberStatus,
  type StandingMessage,
  type StoredFile,
  type TgChat,
  type TgEntity,
  type TgMessage,
  type TgUser,
} from './types.ts';

/** The General topic of every forum. Messages in it have no thread id. */
export const generalTopic = 1;

export type ChatState = {
  chat: TgChat;
  readonly messages: Map<number, StandingMessage>;
  readonly deleted: StandingMessage[];
  readonly pinned: Set<number>;
  readonly topics: Map<number, { readonly name: string; readonly rootId: number }>;
  readonly admins: Set<number>;
  botStatus: MemberStatus;
  isBlocked: boolean;
  migratedTo: number | undefined;
  /** Supergroups count their own ids; private chats and basic groups share those of the account. */
  readonly ownIds: { next: number } | undefined;
};

export type NewMessage = {
  readonly from?: TgUser;
  readonly text?: string;
  readonly entities?: readonly TgEntity[];
  readonly threadId?: number;
  readonly replyTo?: number;
  readonly file?: StoredFile;
  /** Further fields of the platform's message object. */
  readonly fields?: Readonly<Record<string, unknown>>;
};

/** The current chats, people, messages and files. Knows nothing about HTTP or updates. */
export class World {
  readonly #now: () => number;
  readonly bot: TgUser;
  readonly chats = new Map<number, ChatState>();
  readonly files = new Map<string, StoredFile>();
  readonly #sharedIds = { next: 1 };
  #nextChat = 1;
  #nextFile = 1;

  constructor(bot: TgUser, now: () => number) {
    this.bot = bot;
    this.#now = now;
  }

  /** Numbers the next messages of private chats and groups from here, as on a server that the bot has used before. */
  numberMessagesFrom(next: number): void {
    this.#sharedIds.next = next;
  }

  addPrivateChat(user: TgUser): ChatState {
    const known = this.chats.get(user.id);
    if (known !== undefined) return known;
    const { id, first_name, last_name, username } = user;
    return this.#add({
      id,
      type: 'private',
      first_name,
      ...(last_name === undefined ? {} : { last_name }),
      ...(username === undefined ? {} : { username }),
    });
  }

  addGroup(title: string): ChatState {
    return this.#add({ id: -this.#nextChat++ - 1000, type: 'group', title });
  }

  addSupergroup(title: string, options: { readonly isForum?: boolean } = {}): ChatState {
    const id = -1_001_000_000_000 - this.#nextChat++;
    return this.#add({ id, type: 'supergroup', title, ...(options.isForum ? { is_forum: true } : {}) });
  }

  addChannel(title: string): ChatState {
    return this.#add({ id: -1_001_000_000_000 - this.#nextChat++, type: 'channel', title });
  }

  #add(chat: TgChat): ChatState {
    const isOwn = chat.type === 'supergroup' || chat.type === 'channel';
    const state: ChatState = {
      chat,
      messages: new Map(),
      deleted: [],
      pinned: new Set(),
      topics: new Map(),
      admins: new Set(),
      botStatus: 'member',
      isBlocked: false,
      migratedTo: undefined,
      // Message 1 created the group; as a topic id, 1 is the General topic.
      ownIds: isOwn ? { next: 2 } : undefined,
    };
    this.chats.set(chat.id, state);
    return state;
  }

  /** Opens a topic; its id is that of the service message that opens it. */
  addTopic(chatId: number, name: string, by: TgUser): number {
    const state = this.state(chatId);
    const root = this.add(state, {
      from: by,
      fields: { forum_topic_created: { name, icon_color: 7322096 } },
    });
    state.topics.set(root.messageId, { name, rootId: root.messageId });
    return root.messageId;
  }

  state(chatId: number): ChatState {
    const state = this.chats.get(chatId);
    if (state === undefined) throw new Error(`test error: no chat ${chatId} on the Telegram test server`);
    return state;
  }

  /** Returns the chat if the bot may write there, or throws the platform's refusal. */
  writable(chatId: number): ChatState {
    const state = this.chats.get(chatId);
    if (state === undefined) throw badRequest('chat not found');
    if (state.migratedTo !== undefined) {
      throw new ApiError(400, 'Bad Request: group chat was upgraded to a supergroup chat', {
        migrate_to_chat_id: state.migratedTo,
      });
    }
    if (state.isBlocked) throw new ApiError(403, 'Forbidden: bot was blocked by the user');
    const name = state.chat.type === 'supergroup' ? 'supergroup chat' : 'group chat';
    if (state.botStatus === 'kicked') throw new ApiError(403, `Forbidden: bot was kicked from the ${name}`);
    if (state.botStatus === 'left') throw new ApiError(403, `Forbidden: bot is not a member of the ${name}`);
    if (state.chat.type === 'channel') throw badRequest('need administrator rights in the channel chat');
    return state;
  }

  add(state: ChatState, message: NewMessage): StandingMessage {
    const ids = state.ownIds ?? this.#sharedIds;
    const messageId = ids.next++;
    const hasCaption = message.file !== undefined || message.fields?.caption !== undefined;
    const at = this.#now();
    const wire: TgMessage = {
      message_id: messageId,
      date: Math.floor(at / 1000),
      chat: state.chat,
      ...(message.from === undefined ? {} : { from: message.from }),
      ...this.#threadFields(state, message),
      ...this.#quoteFields(state, message.replyTo),
      ...textFields(message.text, message.entities, hasCaption),
      ...message.fields,
    };
    const standing: StandingMessage = {
      messageId,
      from: message.from,
      text: message.text ?? '',
      entities: message.entities ?? [],
      threadId: message.threadId,
      replyTo: message.replyTo,
      at,
      history: [],
      botReaction: undefined,
      file: message.file,
      message: wire,
    };
    state.messages.set(messageId, standing);
    return standing;
  }

  /** `fields` contains the keyboard, without which the message loses it, and further fields of the new version. */
  edit(
    state: ChatState,
    messageId: number,
    text: string,
    entities: readonly TgEntity[],
    fields: Readonly<Record<string, unknown>> = {},
  ): StandingMessage {
    const before = state.messages.get(messageId);
    if (before === undefined) throw badRequest('message to edit not found');
    const hasCaption = before.message.caption !== undefined || before.file !== undefined;
    const {
      text: _,
      entities: __,
      caption: ___,
      caption_entities: ____,
      reply_markup: _____,
      ...rest
    } = before.message;
    const at = this.#now();
    const after: StandingMessage = {
      ...before,
      text,
      entities,
      history: [...before.history, { text: before.text, at }],
      message: {
        ...rest,
        ...textFields(text, entities, hasCaption),
        ...fields,
        edit_date: Math.floor(at / 1000),
      } as TgMessage,
    };
    state.messages.set(messageId, after);
    return after;
  }

  delete(state: ChatState, messageId: number): void {
    const message = state.messages.get(messageId);
    if (message === undefined) throw badRequest('message to delete not found');
    state.messages.delete(messageId);
    state.deleted.push(message);
  }

  react(state: ChatState, messageId: number, emoji: string | undefined): void {
    const message = state.messages.get(messageId);
    if (message === undefined) throw badRequest('message to react not found');
    state.messages.set(messageId, { ...message, botReaction: emoji });
  }

  addFile(
    file: { name: string; mimeType: string; bytes: Uint8Array } | Omit<StoredFile, 'id' | 'path'>,
  ): StoredFile {
    const number = this.#nextFile++;
    const id = `AgACAgIAAxk${String(number).padStart(8, '0')}`;
    const stored: StoredFile =
      file.bytes instanceof Uint8Array
        ? {
            ...file,
            id,
            path: `files/file_${number}`,
            sizeBytes: file.bytes.length,
            bytes: wholeOf(file.bytes),
          }
        : { ...(file as Omit<StoredFile, 'id' | 'path'>), id, path: `files/file_${number}` };
    this.files.set(id, stored);
    return stored;
  }

  #threadFields(state: ChatState, message: NewMessage): Partial<TgMessage> {
    const { threadId } = message;
    if (threadId === undefined || (threadId === generalTopic && state.chat.is_forum)) return {};
    const isTopic = state.topics.has(threadId);
    return { message_thread_id: threadId, ...(isTopic ? { is_topic_message: true } : {}) };
  }

  /** Returns the quoted message as the platform shows it: without its own quote. */
  #quoteFields(state: ChatState, messageId: number | undefined): Partial<TgMessage> {
    const message = messageId === undefined ? undefined : state.messages.get(messageId)?.message;
    if (message === undefined) return {};
    const { reply_to_message: _, ...rest } = message;
    return { reply_to_message: rest as TgMessage };
  }
}

function wholeOf(bytes: Uint8Array): () => Iterable<Uint8Array> {
  return () => [bytes];
}

function textFields(text: string | undefined, entities: readonly TgEntity[] = [], hasCaption = false) {
  if (text === undefined || text === '') return {};
  const hasEntities = entities.length > 0;
  return hasCaption
    ? { caption: text, ...(hasEntities ? { caption_entities: entities } : {}) }
    : { text, ...(hasEntities ? { entities } : {}) };
}
