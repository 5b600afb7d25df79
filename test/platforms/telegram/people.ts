import { findEntities } from './entities.ts';
import type { Draft } from './methods.ts';
import type { MemberStatus, StandingMessage, StoredFile, TgEntity, TgUser } from './types.ts';
import type { UpdateQueue } from './update-queue.ts';
import type { ChatState, NewMessage, World } from './world.ts';

/** The group's own user, which `from` names when an administrator writes anonymously. */
const anonymousAdmin: TgUser = {
  id: 1087968824,
  is_bot: true,
  first_name: 'Group',
  username: 'GroupAnonymousBot',
};

export type UserMessage = {
  /** If omitted: the private chat with `from`. */
  readonly chat?: number;
  readonly from: TgUser;
  readonly text?: string;
  /** If omitted: mentions, commands and links are found as a client finds them. */
  readonly entities?: readonly TgEntity[];
  /** People without a username whose first name in the text mentions them. */
  readonly mentioning?: readonly TgUser[];
  readonly threadId?: number;
  readonly replyTo?: number;
  readonly photo?: StoredFile;
  readonly document?: StoredFile;
  readonly voice?: StoredFile;
  readonly album?: string;
  /** An anonymous administrator: the group itself is the sender. */
  readonly isAnonymous?: boolean;
  /** Further fields of the message object: forward_origin, location, sticker, sender_chat … */
  readonly fields?: Readonly<Record<string, unknown>>;
};

type PeopleDeps = {
  readonly world: World;
  readonly queue: UpdateQueue;
  readonly now: () => number;
  readonly visibleDrafts: Map<number, Draft>;
  /** Privacy mode: in groups the bot only gets commands, mentions and replies to it. */
  readonly onChange: () => void;
};

/** What people do on the platform; each act changes the chat and queues its update. */
export class People {
  readonly #deps: PeopleDeps;
  #nextCallback = 1;

  constructor(deps: PeopleDeps) {
    this.#deps = deps;
  }

  sends(message: UserMessage): StandingMessage {
    const { world } = this.#deps;
    const state = message.chat === undefined ? world.addPrivateChat(message.from) : world.state(message.chat);
    const { text = '' } = message;
    const standing = world.add(state, {
      from: message.isAnonymous ? anonymousAdmin : message.from,
      text,
      entities: message.entities ?? findEntities(text, message.mentioning),
      ...pick(message),
      fields: {
        ...mediaFields(message),
        ...(message.album === undefined ? {} : { media_group_id: message.album }),
        ...(message.isAnonymous ? { sender_chat: state.chat } : {}),
        ...message.fields,
      },
    });
    if (this.#reachesBot(state)) this.#push('message', standing.message);
    return standing;
  }

  /** Sends more than 4096 characters as a client does: in several messages, one after another. */
  sendsLong(message: UserMessage): readonly StandingMessage[] {
    const { text = '' } = message;
    const parts = text.match(/[\s\S]{1,4096}/g) ?? [''];
    return parts.map((part) => this.sends({ ...message, text: part }));
  }

  /** Sends several files under one album id; the caption is on the first. */
  sendsAlbum(message: UserMessage, photos: readonly StoredFile[]): readonly StandingMessage[] {
    const album = `${139_000_000_000 + photos.length * 7 + (message.replyTo ?? 0)}${this.#nextCallback++}`;
    const { text, ...rest } = message;
    return photos.map((photo, index) =>
      this.sends({ ...rest, photo, album, ...(index === 0 && text !== undefined ? { text } : {}) }),
    );
  }

  /** `fields`: further fields of the message as it reads now, such as `rich_message`. */
  edits(edit: {
    readonly chat: number;
    readonly messageId: number;
    readonly text?: string;
    readonly fields?: Readonly<Record<string, unknown>>;
  }): StandingMessage {
    const state = this.#deps.world.state(edit.chat);
    const { text = '', fields = {} } = edit;
    const after = this.#deps.world.edit(state, edit.messageId, text, findEntities(text), fields);
    if (this.#reachesBot(state)) this.#push('edited_message', after.message);
    return after;
  }

  presses(press: {
    readonly chat: number;
    readonly from: TgUser;
    readonly messageId: number;
    readonly data: string;
  }) {
    const message = this.#deps.world.state(press.chat).messages.get(press.messageId);
    const id = String(4_382_000_000_000 + this.#nextCallback++);
    const { from, data } = press;
    this.#push('callback_query', { id, from, message: message?.message, chat_instance: '-1', data });
    return id;
  }

  /** Presses the button with this label under the newest message that has one; returns the query's id. */
  pressesButton(press: { readonly chat: number; readonly from: TgUser; readonly label: string }): string {
    const { chat, from, label } = press;
    for (const { messageId, message } of [...this.#deps.world.state(chat).messages.values()].reverse()) {
      const button = message.reply_markup?.inline_keyboard.flat().find(({ text }) => text === label);
      if (button) return this.presses({ chat, from, messageId, data: button.callback_data ?? '' });
    }
    throw new Error(`test error: no button “${label}” in chat ${chat}`);
  }

  /** In groups only an administrator bot is notified. `emoji` undefined removes the reaction. */
  reacts(reaction: {
    readonly chat: number;
    readonly from: TgUser;
    readonly messageId: number;
    readonly emoji?: string;
    readonly before?: string;
  }): void {
    const state = this.#deps.world.state(reaction.chat);
    if (state.chat.type !== 'private' && state.botStatus !== 'administrator') return;
    const list = (emoji: string | undefined) => (emoji === undefined ? [] : [{ type: 'emoji', emoji }]);
    this.#push('message_reaction', {
      chat: state.chat,
      message_id: reaction.messageId,
      user: reaction.from,
      date: this.#seconds(),
      old_reaction: list(reaction.before),
      new_reaction: list(reaction.emoji),
    });
  }

  /** Deletes a message, which the bot isn't notified of. */
  deletes(chat: number, messageId: number): void {
    this.#deps.world.delete(this.#deps.world.state(chat), messageId);
    this.#deps.onChange();
  }

  joins(chat: number, user: TgUser): StandingMessage {
    return this.#serves(chat, { from: user, fields: { new_chat_members: [user], new_chat_member: user } });
  }

  /** Posts in a channel that the bot is in; there is no sender. */
  posts(chat: number, text: string): StandingMessage {
    const state = this.#deps.world.state(chat);
    const standing = this.#deps.world.add(state, { text, fields: { sender_chat: state.chat } });
    this.#push('channel_post', standing.message);
    return standing;
  }

  polls(chat: number, from: TgUser, question: string): StandingMessage {
    const options = [{ text: 'yes', voter_count: 0 }];
    return this.#serves(chat, {
      from,
      fields: { poll: { id: '5', question, options, total_voter_count: 0 } },
    });
  }

  /** Turns a basic group into a supergroup: new id, two service messages, and calls to the old id are refused. */
  migrates(chat: number): number {
    const { world } = this.#deps;
    const old = world.state(chat);
    const grown = world.addSupergroup(old.chat.title ?? 'group');
    for (const admin of old.admins) grown.admins.add(admin);
    this.#serves(chat, { from: anonymousAdmin, fields: { migrate_to_chat_id: grown.chat.id } });
    this.#serves(grown.chat.id, { from: anonymousAdmin, fields: { migrate_from_chat_id: chat } });
    old.migratedTo = grown.chat.id;
    return grown.chat.id;
  }

  /** Presses Stop on the draft that is currently shown in this private chat. */
  stopsDraft(chat: number): void {
    const draft = this.#deps.visibleDrafts.get(chat);
    if (draft === undefined || !draft.canStop || this.#deps.now() - draft.at > 30_000)
      throw new Error(`test error: no draft with a Stop button is shown in chat ${chat}`);
    if (!draft.keepOnStop) this.#deps.visibleDrafts.delete(chat);
    this.#push('stopped_message_generation', {
      chat: this.#deps.world.state(chat).chat,
      draft_id: draft.draftId,
      ...(draft.threadId === undefined ? {} : { message_thread_id: draft.threadId }),
    });
  }

  blocks(user: TgUser): void {
    this.#changesMembership(this.#deps.world.addPrivateChat(user), user, 'kicked');
  }

  unblocks(user: TgUser): void {
    this.#changesMembership(this.#deps.world.addPrivateChat(user), user, 'member');
  }

  /** Makes the bot a member or an administrator, or removes it from a group. */
  setsBotStatus(chat: number, by: TgUser, status: MemberStatus): void {
    this.#changesMembership(this.#deps.world.state(chat), by, status);
  }

  #changesMembership(state: ChatState, from: TgUser, status: MemberStatus): void {
    const before = state.isBlocked ? 'kicked' : state.botStatus;
    if (state.chat.type === 'private') state.isBlocked = status === 'kicked';
    else state.botStatus = status;
    const user = this.#deps.world.bot;
    this.#push('my_chat_member', {
      chat: state.chat,
      from,
      date: this.#seconds(),
      old_chat_member: { user, status: before },
      new_chat_member: { user, status },
    });
  }

  #serves(chat: number, message: NewMessage): StandingMessage {
    const state = this.#deps.world.state(chat);
    const standing = this.#deps.world.add(state, message);
    this.#push('message', standing.message);
    return standing;
  }

  #reachesBot({ isBlocked, botStatus }: ChatState): boolean {
    return !isBlocked && botStatus !== 'left' && botStatus !== 'kicked';
  }

  #push(kind: string, body: unknown): void {
    this.#deps.queue.push(kind, body);
    this.#deps.onChange();
  }

  #seconds(): number {
    return Math.floor(this.#deps.now() / 1000);
  }
}

function pick({ threadId, replyTo, photo, document, voice }: UserMessage): Partial<NewMessage> {
  const file = photo ?? document ?? voice;
  return {
    ...(threadId === undefined ? {} : { threadId }),
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(file === undefined ? {} : { file }),
  };
}

function mediaFields({ photo, document, voice }: UserMessage): Record<string, unknown> {
  if (photo !== undefined) {
    const size = { ...wire(photo), width: 1280, height: 960 };
    return { photo: [{ ...size, file_id: `${photo.id}s`, width: 90, height: 67, file_size: 900 }, size] };
  }
  if (document !== undefined)
    return { document: { ...wire(document), file_name: document.name, mime_type: document.mimeType } };
  if (voice !== undefined) return { voice: { ...wire(voice), duration: 3, mime_type: voice.mimeType } };
  return {};
}

function wire({ id, sizeBytes }: StoredFile) {
  return { file_id: id, file_unique_id: `u${id}`, file_size: sizeBytes };
}
