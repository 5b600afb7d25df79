/**
 * Keeps what the gateway reports about guilds, channels, threads and roles: enough to determine where a message
 * belongs, who administers a guild and what the bot may read there. It keeps no messages and no members.
 */
import { ChannelType, PermissionFlagsBits } from 'discord.js';
import type { Chat } from '#contracts/envelope.ts';
import { conversationId, threadId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { type Bot, discord, isLater } from './ids.ts';
import {
  type Channel,
  channelSchema,
  guildSchema,
  memberUserSchema,
  type Role,
  roleSchema,
  type User,
} from './payload-schema.ts';
import {
  channelPermissions,
  guildPermissions,
  type Holder,
  isAdministrative,
  readPermissions,
} from './permissions.ts';
import { fieldsOf, idIn } from './raw-fields.ts';

/** The location of a message. */
export type ChannelLocation = {
  /** The channel, thread or direct channel itself, from which history is read. */
  readonly id: string;
  readonly guildId?: string;
  readonly route: Omit<ReplyRoute, 'replyTo'>;
  readonly chat: Chat;
  /** The other side of a direct channel, if known. */
  readonly peer?: User;
};

type KnownGuild = {
  readonly ownerId: string | undefined;
  readonly roles: Map<string, KnownRole>;
  readonly ownRoles: readonly string[];
};
type KnownRole = { readonly name: string; readonly permissions: bigint; readonly botId: string | undefined };

const threadTypes = new Set<number>([
  ChannelType.AnnouncementThread,
  ChannelType.PublicThread,
  ChannelType.PrivateThread,
]);
/** Channels with messages: text, voice (its chat), announcements, stages and threads. Forums only contain threads. */
const messageTypes = new Set<number>([
  ChannelType.GuildText,
  ChannelType.GuildVoice,
  ChannelType.GuildAnnouncement,
  ChannelType.GuildStageVoice,
  ...threadTypes,
]);

export class Directory {
  readonly #bot: Bot;
  readonly #guilds = new Map<string, KnownGuild>();
  readonly #channels = new Map<string, Channel>();
  /** Direct channels, with the other side if known. */
  readonly #direct = new Map<string, User | undefined>();

  constructor(bot: Bot) {
    this.#bot = bot;
  }

  /** Learns from an event; anything in it that can't be read changes nothing. */
  apply(event: string, data: unknown): void {
    switch (event) {
      case 'GUILD_CREATE':
      case 'GUILD_UPDATE':
        this.#learnGuild(data);
        break;
      case 'GUILD_ROLE_CREATE':
      case 'GUILD_ROLE_UPDATE':
        this.#learnRole(data);
        break;
      case 'GUILD_ROLE_DELETE':
        this.#guilds.get(idIn(data, 'guild_id'))?.roles.delete(idIn(data, 'role_id'));
        break;
      case 'GUILD_MEMBER_UPDATE':
        this.#learnOwnRoles(data);
        break;
      case 'CHANNEL_CREATE':
      case 'CHANNEL_UPDATE':
      case 'THREAD_CREATE':
      case 'THREAD_UPDATE':
        this.learnChannel(data);
        break;
      case 'THREAD_LIST_SYNC':
        for (const thread of listIn(data, 'threads')) this.learnChannel(thread, idIn(data, 'guild_id'));
        break;
      case 'CHANNEL_DELETE':
      case 'THREAD_DELETE':
        this.#channels.delete(idIn(data));
        break;
      default:
    }
  }

  hasGuild(guildId: string): boolean {
    return this.#guilds.has(guildId);
  }

  /** Forgets a guild that the bot was removed from. */
  forgetGuild(guildId: string): void {
    this.#guilds.delete(guildId);
    for (const [id, channel] of this.#channels) if (channel.guild_id === guildId) this.#channels.delete(id);
  }

  learnChannel(data: unknown, guildId?: string): Channel | undefined {
    const parsed = channelSchema.safeParse(data);
    if (!parsed.success) return undefined;
    const channel = { ...parsed.data, guild_id: parsed.data.guild_id ?? guildId };
    if (channel.type === ChannelType.DM) {
      this.learnDirect(channel.id, channel.recipients?.[0]);
    } else if (channel.guild_id !== undefined) this.#channels.set(channel.id, channel);
    return channel;
  }

  /**
   * Records a direct channel. A `peer` that is the bot itself says nothing about the other side. A guild's channel stays
   * one, even if a message there doesn't name its guild.
   */
  learnDirect(channelId: string, peer?: User): void {
    if (this.#channels.has(channelId)) return;
    const isPeer = peer !== undefined && peer.id !== this.#bot.id;
    this.#direct.set(channelId, isPeer ? peer : this.#direct.get(channelId));
  }

  /** Returns undefined if nothing is known about the channel. */
  placeOf(channelId: string): ChannelLocation | undefined {
    if (this.#direct.has(channelId)) return this.#directPlace(channelId);
    const channel = this.#channels.get(channelId);
    return channel === undefined ? undefined : this.#guildPlace(channel);
  }

  #directPlace(channelId: string): ChannelLocation {
    const peer = this.#direct.get(channelId);
    return {
      id: channelId,
      route: this.#route(channelId),
      chat: { kind: 'dm' },
      ...(peer === undefined ? {} : { peer }),
    };
  }

  #guildPlace(channel: Channel): ChannelLocation {
    const { id, guild_id: guildId = '', parent_id: parent } = channel;
    const isThread = threadTypes.has(channel.type) && parent != null;
    const chat: Chat = { kind: 'group', parent: conversationId(guildId) };
    const route = isThread ? { ...this.#route(parent), thread: threadId(id) } : this.#route(id);
    return { id, guildId, route, chat };
  }

  #route(conversation: string): ChannelLocation['route'] {
    return {
      channel: discord,
      account: this.#bot.account,
      conversation: conversationId(conversation),
    };
  }

  /** Returns every channel and active thread of the guild that can contain messages. */
  placesOf(guildId: string): readonly ChannelLocation[] {
    return [...this.#channels.values()]
      .filter((channel) => channel.guild_id === guildId && messageTypes.has(channel.type))
      .map((channel) => this.#guildPlace(channel));
  }

  /** Returns, among text channels the bot may write in, the one where Discord greets newcomers, or else the oldest. */
  greetingPlace(guildId: string, greetingId: string | undefined): ChannelLocation | undefined {
    const open = [...this.#channels.values()].filter(
      ({ id, type, guild_id: guild }) =>
        guild === guildId && type === ChannelType.GuildText && this.access(id).canWrite,
    );
    const [oldest] = open.sort((one, other) => (isLater(one.id, other.id) ? 1 : -1));
    const channel = open.find(({ id }) => id === greetingId) ?? oldest;
    return channel && this.#guildPlace(channel);
  }

  /** Returns the newest known message of a channel. */
  lastMessageId(channelId: string): string | undefined {
    return this.#channels.get(channelId)?.last_message_id ?? undefined;
  }

  /** Records a message as its channel's newest, unless it is an older one that came late. */
  noteMessage(channelId: string, messageId: string): void {
    const channel = this.#channels.get(channelId);
    if (channel === undefined || !isLater(messageId, channel.last_message_id ?? '0')) return;
    this.#channels.set(channelId, { ...channel, last_message_id: messageId });
  }

  /** Says whether the member administers the guild; undefined if the guild or the roles aren't known. */
  isAdmin(guildId: string | undefined, userId: string, roles?: readonly string[]): boolean | undefined {
    const holder = roles && this.#holder(guildId ?? '', userId, roles);
    return holder && isAdministrative(guildPermissions(holder));
  }

  /** Says whether the bot may see the channel, read its history and write there; assumes so while that isn't known. */
  access(channelId: string): {
    readonly canView: boolean;
    readonly canReadHistory: boolean;
    readonly canWrite: boolean;
  } {
    const channel = this.#channels.get(channelId);
    const guildId = channel?.guild_id ?? '';
    const guild = this.#guilds.get(guildId);
    const holder = guild && this.#holder(guildId, this.#bot.id, guild.ownRoles);
    if (channel === undefined || holder === undefined)
      return { canView: true, canReadHistory: true, canWrite: true };
    // A thread has its parent's permissions.
    const governing = threadTypes.has(channel.type) ? this.#channels.get(channel.parent_id ?? '') : channel;
    const may = channelPermissions(holder, governing?.permission_overwrites ?? []);
    return {
      canView: may.has(PermissionFlagsBits.ViewChannel),
      canReadHistory: may.has(PermissionFlagsBits.ReadMessageHistory),
      canWrite: may.has([PermissionFlagsBits.ViewChannel, PermissionFlagsBits.SendMessages]),
    };
  }

  /** Says whether Discord made this role for the bot; mentioning it addresses the bot. */
  isOwnRole(guildId: string | undefined, roleId: string): boolean {
    return this.#guilds.get(guildId ?? '')?.roles.get(roleId)?.botId === this.#bot.id;
  }

  roleName(guildId: string | undefined, roleId: string): string | undefined {
    return this.#guilds.get(guildId ?? '')?.roles.get(roleId)?.name;
  }

  channelName(channelId: string): string | undefined {
    return this.#channels.get(channelId)?.name ?? undefined;
  }

  #holder(guildId: string, userId: string, roles: readonly string[]): Holder | undefined {
    const guild = this.#guilds.get(guildId);
    if (guild === undefined) return undefined;
    const permissionsOf = (roleId: string) => guild.roles.get(roleId)?.permissions ?? 0n;
    return { guildId, ownerId: guild.ownerId, userId, roles, permissionsOf };
  }

  #learnGuild(data: unknown): void {
    const parsed = guildSchema.safeParse(data);
    if (!parsed.success || parsed.data.unavailable === true) return;
    const { id, owner_id: ownerId, roles, channels = [], threads = [], members = [] } = parsed.data;
    const known = this.#guilds.get(id);
    this.#guilds.set(id, {
      ownerId: ownerId ?? known?.ownerId,
      roles: roles === undefined ? (known?.roles ?? new Map()) : new Map(roles.map(roleEntry)),
      ownRoles: known?.ownRoles ?? [],
    });
    for (const member of members) this.#learnOwnRoles({ ...fieldsOf(member), guild_id: id });
    for (const channel of [...channels, ...threads]) this.learnChannel(channel, id);
  }

  #learnRole(data: unknown): void {
    const role = roleSchema.safeParse(fieldsOf(data).role);
    if (role.success) this.#guilds.get(idIn(data, 'guild_id'))?.roles.set(...roleEntry(role.data));
  }

  #learnOwnRoles(data: unknown): void {
    const member = memberUserSchema.safeParse(data);
    const guildId = idIn(data, 'guild_id');
    const guild = this.#guilds.get(guildId);
    if (!member.success || guild === undefined || member.data.user.id !== this.#bot.id) return;
    this.#guilds.set(guildId, { ...guild, ownRoles: member.data.roles });
  }
}

function roleEntry({ id, name, permissions, tags }: Role): [string, KnownRole] {
  return [id, { name, permissions: readPermissions(permissions), botId: tags?.bot_id }];
}

function listIn(data: unknown, key: string): readonly unknown[] {
  const list = fieldsOf(data)[key];
  return Array.isArray(list) ? list : [];
}
