import { createHmac } from 'node:crypto';
import { everybodyMay, isThread } from './permissions.ts';
import { compareIds } from './snowflake.ts';
import {
  channelTypes,
  type DiscordUser,
  messageTypes,
  type StandingMessage,
  type StoredFile,
  type Wire,
} from './types.ts';
import type { ChannelState, GuildState, Member, World } from './world.ts';

const day = 24 * 3600 * 1000;

/** Renders the world in the platform's JSON. */
export class Renderer {
  readonly #world: World;
  readonly #baseUrl: () => string;

  constructor(world: World, baseUrl: () => string) {
    this.#world = world;
    this.#baseUrl = baseUrl;
  }

  user({ id, username, global_name, bot }: DiscordUser): Wire {
    const look = { avatar: null, banner: null, accent_color: null, avatar_decoration_data: null, clan: null };
    const name = { username, global_name, discriminator: bot ? '1337' : '0' };
    return { id, ...name, ...look, public_flags: 0, ...(bot ? { bot: true } : {}) };
  }

  member({ nick, joinedAt, roles }: Member): Wire {
    const state = { avatar: null, premium_since: null, pending: false, deaf: false, mute: false, flags: 0 };
    return { nick, roles, joined_at: iso(joinedAt), communication_disabled_until: null, ...state };
  }

  memberWithUser(member: Member): Wire {
    return { ...this.member(member), user: this.user(member.user) };
  }

  channel(channel: ChannelState): Wire {
    const last = [...channel.messages.keys()].sort(compareIds).at(-1) ?? null;
    const { id, type, name } = channel;
    if (type === channelTypes.dm) {
      const recipients = channel.recipient === undefined ? [] : [this.user(channel.recipient)];
      return { id, type, last_message_id: last, flags: 0, recipients };
    }
    const common = { id, type, name, guild_id: channel.guildId, last_message_id: last, flags: 0 };
    if (channel.thread !== undefined) return { ...common, ...this.#threadFields(channel) };
    const overwrite = {
      id: this.#world.bot.id,
      type: 1,
      allow: String(channel.granted),
      deny: String(channel.denied),
    };
    return {
      ...common,
      parent_id: null,
      position: 0,
      topic: null,
      nsfw: false,
      rate_limit_per_user: 0,
      permission_overwrites: channel.denied === 0n && channel.granted === 0n ? [] : [overwrite],
      ...(type === channelTypes.forum ? { available_tags: [], default_reaction_emoji: null } : {}),
    };
  }

  #threadFields(channel: ChannelState): Wire {
    const { thread, messages } = channel;
    if (thread === undefined) return {};
    const isBotIn = thread.members.has(this.#world.bot.id);
    return {
      parent_id: channel.parentId,
      owner_id: thread.owner.id,
      rate_limit_per_user: 0,
      message_count: messages.size,
      total_message_sent: messages.size,
      member_count: thread.members.size,
      thread_metadata: {
        archived: thread.isArchived,
        locked: thread.isLocked,
        auto_archive_duration: 1440,
        archive_timestamp: iso(thread.archivedAt),
        create_timestamp: iso(thread.archivedAt),
        ...(channel.type === channelTypes.privateThread ? { invitable: true } : {}),
      },
      ...(isBotIn ? { member: this.threadMember(channel, this.#world.bot.id) } : {}),
    };
  }

  threadMember(channel: ChannelState, userId: string): Wire {
    return { id: channel.id, user_id: userId, join_timestamp: iso(this.#world.now()), flags: 1 };
  }

  /** Returns the contents of GUILD_CREATE, which leaves out archived threads and private ones without the bot. */
  guild(guild: GuildState): Wire {
    const here = [...this.#world.channels.values()].filter((channel) => channel.guildId === guild.id);
    const isShown = (channel: ChannelState) =>
      !channel.thread?.isArchived && this.#world.botMay(channel, 'viewChannel');
    return {
      ...this.guildObject(guild),
      joined_at: iso(guild.joinedAt),
      large: false,
      unavailable: false,
      member_count: guild.members.size,
      members: [...guild.members.values()]
        .filter(({ user }) => user.id === this.#world.bot.id)
        .map((member) => this.memberWithUser(member)),
      channels: here.filter((channel) => !isThread(channel.type)).map((channel) => this.channel(channel)),
      threads: here
        .filter((channel) => isThread(channel.type) && isShown(channel))
        .map((channel) => this.channel(channel)),
      voice_states: [],
      presences: [],
      stage_instances: [],
      guild_scheduled_events: [],
      soundboard_sounds: [],
    };
  }

  guildObject({ id, name, owner, roles, emojis }: GuildState): Wire {
    const role = { color: 0, hoist: false, position: 0, managed: false, flags: 0 };
    const colors = { primary_color: 0, secondary_color: null, tertiary_color: null };
    const everybody = { id, name: '@everyone', permissions: String(everybodyMay), mentionable: false };
    const named = [...roles.values()].map((one) => ({
      id: one.id,
      name: one.name,
      permissions: '0',
      mentionable: one.isMentionable,
    }));
    return {
      id,
      name,
      owner_id: owner.id,
      icon: null,
      splash: null,
      features: [],
      roles: [everybody, ...named].map((one) => ({ ...role, colors, ...one })),
      emojis: [...emojis].map(([emojiId, emojiName]) => ({
        id: emojiId,
        name: emojiName,
        roles: [],
        require_colons: true,
        managed: false,
        animated: false,
        available: true,
      })),
      stickers: [],
      afk_timeout: 300,
      afk_channel_id: null,
      system_channel_id: null,
      system_channel_flags: 0,
      rules_channel_id: null,
      public_updates_channel_id: null,
      safety_alerts_channel_id: null,
      verification_level: 0,
      default_message_notifications: 0,
      explicit_content_filter: 0,
      mfa_level: 0,
      nsfw_level: 0,
      premium_tier: 0,
      premium_subscription_count: 0,
      premium_progress_bar_enabled: false,
      preferred_locale: 'en-US',
      vanity_url_code: null,
      description: null,
      banner: null,
      application_id: null,
      max_members: 500_000,
    };
  }

  /** Returns a message as REST shows it. `hasContent` false: as shown to an application without MessageContent. */
  message(message: StandingMessage, hasContent: boolean): Wire {
    const channel = this.#world.channel(message.channelId);
    const shown = hasContent || this.#isAlwaysShown(channel, message);
    const content = {
      content: shown ? message.text : '',
      attachments: shown ? message.files.map((file) => this.attachment(channel.id, file)) : [],
      embeds: shown ? message.embeds : [],
      components: shown ? message.components : [],
    };
    const mentioned = message.mentioned.users.map((id) => this.#world.users.get(id));
    const thread = this.#world.channels.get(message.id);
    return {
      id: message.id,
      channel_id: channel.id,
      type: message.type,
      author: this.user(message.author),
      ...content,
      timestamp: iso(message.at),
      edited_timestamp: message.editedAt === undefined ? null : iso(message.editedAt),
      tts: false,
      pinned: false,
      flags: message.flags,
      mention_everyone: message.mentioned.isEveryone,
      mention_roles: message.mentioned.roles,
      mentions: mentioned.filter((user) => user !== undefined).map((user) => this.user(user)),
      ...this.#reactions(message),
      ...this.#reference(channel, message, hasContent),
      ...(thread !== undefined && channel.id === thread.parentId ? { thread: this.channel(thread) } : {}),
      ...message.fields,
    };
  }

  /** Returns a message as the gateway shows it: with the guild, the member and the channel's type. */
  messageEvent(message: StandingMessage, hasContent: boolean): Wire {
    const channel = this.#world.channel(message.channelId);
    const guild = this.#world.guildOf(channel);
    const plain = this.message(message, hasContent);
    const common = { ...plain, channel_type: channel.type };
    if (guild === undefined) return common;
    const member = guild.members.get(message.author.id);
    const mentions = (plain.mentions as readonly { readonly id: string }[]).map((user) => {
      const found = guild.members.get(user.id);
      return found === undefined ? user : { ...user, member: this.member(found) };
    });
    const of = member === undefined ? {} : { member: this.member(member) };
    return { ...common, guild_id: guild.id, ...of, mentions };
  }

  /** Signs the link for a day, as the platform does; each time a message is read, its link is fresh. */
  attachment(channelId: string, file: StoredFile): Wire {
    const expires = Math.floor((this.#world.now() + day) / 1000).toString(16);
    const path = `/attachments/${channelId}/${file.id}/${encodeURIComponent(file.name)}`;
    const url = `${this.#baseUrl()}${path}?ex=${expires}&is=0&hm=${linkMark(file.id, expires)}&`;
    return {
      id: file.id,
      filename: file.name,
      size: file.sizeBytes,
      content_type: file.mimeType,
      url,
      proxy_url: url,
      ...(file.description === undefined ? {} : { description: file.description }),
      ...file.fields,
    };
  }

  #isAlwaysShown(channel: ChannelState, message: StandingMessage): boolean {
    const { bot } = this.#world;
    const isOwn = message.author.id === bot.id;
    return isOwn || channel.type === channelTypes.dm || message.mentioned.users.includes(bot.id);
  }

  #reactions({ reactions }: StandingMessage): Wire {
    if (reactions.size === 0) return {};
    const list = [...reactions].map(([key, users]) => ({
      emoji: emojiOf(key),
      count: users.size,
      count_details: { burst: 0, normal: users.size },
      me: users.has(this.#world.bot.id),
      me_burst: false,
      burst_colors: [],
    }));
    return { reactions: list };
  }

  /** A reply quotes a message in its channel; a thread's first message points to one in the parent. */
  #reference(channel: ChannelState, { type, replyTo }: StandingMessage, hasContent: boolean): Wire {
    if (replyTo === undefined) return {};
    const isStarter = type === messageTypes.threadStarter && channel.parentId !== undefined;
    const place = isStarter ? this.#world.channel(channel.parentId ?? '') : channel;
    const guild = channel.guildId === undefined ? {} : { guild_id: channel.guildId };
    const reference = { type: 0, message_id: replyTo, channel_id: place.id, ...guild };
    const target = place.messages.get(replyTo);
    // The platform shows the quoted message without its own quote, and null if it was deleted.
    const quoted = target === undefined ? null : this.message({ ...target, replyTo: undefined }, hasContent);
    return { message_reference: reference, referenced_message: quoted };
  }
}

/** `name:id` is a guild's own emoji; anything else is the emoji itself. */
export function emojiOf(key: string): Wire {
  const custom = /^(\w+):(\d+)$/.exec(key);
  return custom === null ? { id: null, name: key } : { id: custom[2], name: custom[1], animated: false };
}

export const linkMark = (fileId: string, expires: string): string =>
  createHmac('sha256', 'attachment links').update(`${fileId}.${expires}`).digest('hex');

/** `at` is in ms; its fraction gives the microseconds. */
export const iso = (at: number): string => {
  const micros = String(Math.round((at % 1) * 1000) % 1000).padStart(3, '0');
  return new Date(at).toISOString().replace('Z', `${micros}+00:00`);
};
