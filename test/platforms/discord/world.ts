import { refuse } from './errors.ts';
import { nobody } from './mentions.ts';
import { everybodyMay, isThread, type Permission, permissions } from './permissions.ts';
import { Snowflakes } from './snowflake.ts';
import {
  type ChannelType,
  channelTypes,
  type DiscordUser,
  type StandingMessage,
  type StoredFile,
  type Wire,
} from './types.ts';

/** How long the bot has been in a guild that exists at the start of a test. */
const monthMs = 30 * 24 * 3_600_000;

export type Member = {
  readonly user: DiscordUser;
  readonly nick: string | null;
  readonly joinedAt: number;
  readonly roles: string[];
};

export type Role = { readonly id: string; readonly name: string; readonly isMentionable: boolean };

export type GuildState = {
  readonly id: string;
  readonly name: string;
  readonly owner: DiscordUser;
  readonly members: Map<string, Member>;
  readonly roles: Map<string, Role>;
  readonly emojis: Map<string, string>;
  isBotIn: boolean;
  /** When the bot was added. */
  joinedAt: number;
  /** The guild is temporarily unavailable. */
  isUnavailable: boolean;
};

export type ThreadState = {
  isArchived: boolean;
  isLocked: boolean;
  archivedAt: number;
  readonly owner: DiscordUser;
  readonly members: Set<string>;
};

export type ChannelState = {
  readonly id: string;
  readonly type: ChannelType;
  readonly guildId: string | undefined;
  readonly parentId: string | undefined;
  name: string;
  /** The other person in a direct conversation. */
  readonly recipient: DiscordUser | undefined;
  readonly messages: Map<string, StandingMessage>;
  readonly deleted: StandingMessage[];
  /** What the bot may not do here. */
  denied: bigint;
  /** What it may do in addition to what everybody may. */
  granted: bigint;
  /** The person accepts no direct messages from the bot. */
  isBlocked: boolean;
  readonly thread: ThreadState | undefined;
};

export type NewMessage = Partial<
  Omit<StandingMessage, 'channelId' | 'at' | 'editedAt' | 'history' | 'reactions' | 'author'>
> & { readonly author: DiscordUser };

type NewFile = {
  readonly name: string;
  readonly mimeType?: string;
  readonly bytes: Uint8Array | StoredFile['bytes'];
  /** If omitted: the true length of `bytes`. */
  readonly sizeBytes?: number;
  readonly description?: string;
  readonly fields?: Wire;
};

/** The current people, guilds, channels and messages. Knows nothing about HTTP or the gateway. */
export class World {
  readonly now: () => number;
  readonly ids: Snowflakes;
  readonly bot: DiscordUser;
  readonly users = new Map<string, DiscordUser>();
  readonly guilds = new Map<string, GuildState>();
  readonly channels = new Map<string, ChannelState>();
  readonly files = new Map<string, StoredFile>();

  constructor(bot: DiscordUser, now: () => number) {
    this.now = now;
    this.ids = new Snowflakes(now);
    this.bot = bot;
    this.users.set(bot.id, bot);
  }

  addUser(username: string, displayName: string | null = null): DiscordUser {
    const user = { id: this.ids.next(), username, global_name: displayName };
    this.users.set(user.id, user);
    return user;
  }

  /** The bot and `owner` are in it. */
  addGuild(name: string, owner: DiscordUser): GuildState {
    const id = this.ids.next();
    const guild: GuildState = {
      id,
      name,
      owner,
      members: new Map(),
      roles: new Map(),
      emojis: new Map(),
      isBotIn: true,
      joinedAt: this.now() - monthMs,
      isUnavailable: false,
    };
    this.guilds.set(id, guild);
    this.addMember(guild, owner);
    this.addMember(guild, this.bot);
    return guild;
  }

  addMember(guild: GuildState, user: DiscordUser): Member {
    const member = { user, nick: null, joinedAt: this.now(), roles: [] };
    guild.members.set(user.id, member);
    return member;
  }

  addRole(guild: GuildState, name: string, isMentionable = true): Role {
    const role = { id: this.ids.next(), name, isMentionable };
    guild.roles.set(role.id, role);
    return role;
  }

  /** Adds a guild's own emoji and returns its key in calls, `name:id`. */
  addEmoji(guild: GuildState, name: string): string {
    const id = this.ids.next();
    guild.emojis.set(id, name);
    return `${name}:${id}`;
  }

  addChannel(guild: GuildState, name: string, type: ChannelType = channelTypes.text): ChannelState {
    return this.#add({ id: this.ids.next(), type, name, guildId: guild.id });
  }

  /** Returns the direct conversation with a person, always the same one. */
  dmWith(user: DiscordUser): ChannelState {
    for (const channel of this.channels.values()) if (channel.recipient?.id === user.id) return channel;
    return this.#add({ id: this.ids.next(), type: channelTypes.dm, name: '', recipient: user });
  }

  /** `id` is that of the message it is attached to, or of the first message of a forum post. */
  addThread(thread: {
    readonly parent: ChannelState;
    readonly name: string;
    readonly owner: DiscordUser;
    readonly id?: string;
    readonly isPrivate?: boolean;
  }): ChannelState {
    const { parent, owner } = thread;
    const type = thread.isPrivate ? channelTypes.privateThread : channelTypes.publicThread;
    const state = { isArchived: false, isLocked: false, archivedAt: this.now(), owner };
    return this.#add({
      id: thread.id ?? this.ids.next(),
      type,
      name: thread.name,
      guildId: parent.guildId,
      parentId: parent.id,
      thread: { ...state, members: new Set([owner.id]) },
    });
  }

  #add(
    channel: Pick<ChannelState, 'id' | 'type' | 'name'> &
      Partial<Pick<ChannelState, 'guildId' | 'parentId' | 'recipient' | 'thread'>>,
  ): ChannelState {
    const state: ChannelState = {
      guildId: undefined,
      parentId: undefined,
      recipient: undefined,
      thread: undefined,
      ...channel,
      messages: new Map(),
      deleted: [],
      denied: 0n,
      granted: 0n,
      isBlocked: false,
    };
    this.channels.set(state.id, state);
    return state;
  }

  channel(id: string): ChannelState {
    const channel = this.channels.get(id);
    if (channel === undefined) throw new Error(`test error: no channel ${id} on the Discord test server`);
    return channel;
  }

  guild(id: string): GuildState {
    const guild = this.guilds.get(id);
    if (guild === undefined) throw new Error(`test error: no guild ${id} on the Discord test server`);
    return guild;
  }

  guildOf(channel: ChannelState): GuildState | undefined {
    return channel.guildId === undefined ? undefined : this.guild(channel.guildId);
  }

  message(channelId: string, messageId: string): StandingMessage {
    const message = this.channel(channelId).messages.get(messageId);
    if (message === undefined) throw new Error(`test error: no message ${messageId} in channel ${channelId}`);
    return message;
  }

  botMay(channel: ChannelState, permission: Permission): boolean {
    const guild = this.guildOf(channel);
    if (guild === undefined) return true;
    if (!guild.isBotIn || guild.isUnavailable) return false;
    const parent = channel.parentId === undefined ? undefined : this.channels.get(channel.parentId);
    const denied = channel.denied | (parent?.denied ?? 0n);
    const isOutside =
      channel.type === channelTypes.privateThread && !channel.thread?.members.has(this.bot.id);
    if (permission === 'viewChannel' && isOutside) return false;
    return ((everybodyMay | channel.granted) & permissions[permission] & ~denied) !== 0n;
  }

  /** Returns the channel of a call, or throws the platform's refusal. */
  visible(id: string): ChannelState {
    const channel = this.channels.get(id);
    if (channel === undefined) throw refuse('unknownChannel');
    if (!this.botMay(channel, 'viewChannel')) throw refuse('missingAccess');
    return channel;
  }

  /** Throws the platform's refusal unless the bot has this permission here. */
  require(channel: ChannelState, permission: Permission): void {
    if (!this.botMay(channel, permission)) throw refuse('missingPermissions');
  }

  add(channel: ChannelState, message: NewMessage): StandingMessage {
    const at = this.now();
    const standing: StandingMessage = {
      type: 0,
      text: '',
      replyTo: undefined,
      mentioned: nobody,
      files: [],
      nonce: undefined,
      flags: 0,
      embeds: [],
      components: [],
      ephemeralFor: undefined,
      fields: {},
      ...message,
      id: message.id ?? this.ids.next(),
      channelId: channel.id,
      at,
      editedAt: undefined,
      history: [],
      reactions: new Map(),
    };
    channel.messages.set(standing.id, standing);
    if (isThread(channel.type)) channel.thread?.members.add(message.author.id);
    return standing;
  }

  change(before: StandingMessage, change: Partial<StandingMessage>): StandingMessage {
    const at = this.now();
    const isNewText = change.text !== undefined;
    const after: StandingMessage = {
      ...before,
      ...change,
      ...(isNewText
        ? {
            editedAt: laterThan(before.editedAt, change.editedAt ?? at),
            history: [...before.history, { text: before.text, at }],
          }
        : {}),
    };
    this.channel(before.channelId).messages.set(before.id, after);
    return after;
  }

  delete(message: StandingMessage): void {
    const channel = this.channel(message.channelId);
    channel.messages.delete(message.id);
    channel.deleted.push(message);
  }

  react(message: StandingMessage, userId: string, key: string, isAdded: boolean): StandingMessage {
    const reactions = new Map([...message.reactions].map(([one, users]) => [one, new Set(users)]));
    const users = reactions.get(key) ?? new Set<string>();
    if (isAdded) users.add(userId);
    else users.delete(userId);
    if (users.size === 0) reactions.delete(key);
    else reactions.set(key, users);
    return this.change(message, { reactions });
  }

  addFile({ bytes, ...file }: NewFile): StoredFile {
    const known = bytes instanceof Uint8Array ? bytes : undefined;
    const stored: StoredFile = {
      mimeType: 'application/octet-stream',
      sizeBytes: known?.length ?? 0,
      ...file,
      id: this.ids.next(),
      bytes: typeof bytes === 'function' ? bytes : () => [bytes],
    };
    this.files.set(stored.id, stored);
    return stored;
  }
}

/** Ensures that no two edits of a message have the same time; Discord states it in microseconds. */
function laterThan(before: number | undefined, at: number): number {
  return before === undefined || at > before ? at : before + 0.001;
}
