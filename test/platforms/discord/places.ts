import type { Events } from './events.ts';
import type { People, UserMessage } from './people.ts';
import { type Permission, permissions } from './permissions.ts';
import type { Platform } from './platform.ts';
import { type NewThread, openThread } from './threads.ts';
import { type ChannelType, channelTypes, type DiscordUser, type StandingMessage } from './types.ts';
import type { ChannelState, GuildState, World } from './world.ts';

/** What people do with guilds, channels and threads that the bot can see. */
export class Places {
  readonly #platform: Platform;
  readonly #world: World;
  readonly #events: Events;
  readonly #people: People;

  constructor(platform: Platform, people: People) {
    this.#platform = platform;
    this.#world = platform.world;
    this.#events = platform.events;
    this.#people = people;
  }

  /** A thread on a message gets the message's id; one without a message gets its own. */
  startsThread({ on, ...thread }: NewThread): ChannelState {
    const current = on === undefined ? undefined : this.#world.message(on.channelId, on.id);
    return openThread(this.#platform, { ...thread, ...(current === undefined ? {} : { on: current }) });
  }

  /** A post is a thread whose first message has the thread's own id. */
  postsInForum(
    post: Omit<UserMessage, 'channel' | 'replyTo'> & {
      readonly forum: ChannelState;
      readonly title: string;
    },
  ): { readonly thread: ChannelState; readonly message: StandingMessage } {
    const { forum, title, from, text = '', files = [], fields = {} } = post;
    if (forum.type !== channelTypes.forum) throw new Error(`test error: ${forum.name} is no forum`);
    const thread = openThread(this.#platform, { parent: forum, name: title, owner: from });
    const mentioned = this.#people.mentionsIn(thread, text);
    const message = this.#world.add(thread, { id: thread.id, author: from, text, mentioned, files, fields });
    this.#events.messageCreated(message);
    return { thread, message };
  }

  archives(thread: ChannelState, options: { readonly isLocked?: boolean } = {}): void {
    if (thread.thread === undefined) throw new Error(`test error: ${thread.id} is no thread`);
    thread.thread.isArchived = true;
    thread.thread.isLocked = options.isLocked ?? false;
    thread.thread.archivedAt = this.#world.now();
    this.#events.threadChanged(thread, 'THREAD_UPDATE');
  }

  deletesThread(thread: ChannelState): void {
    this.#world.channels.delete(thread.id);
    this.#events.threadDeleted(thread);
  }

  createsChannel(guild: GuildState, name: string, type: ChannelType = channelTypes.text): ChannelState {
    const channel = this.#world.addChannel(guild, name, type);
    this.#events.channelChanged(channel, 'CHANNEL_CREATE');
    return channel;
  }

  /** Takes permissions away from the bot in a channel, or gives them back. */
  denies(channel: ChannelState, ...denied: readonly Permission[]): void {
    channel.denied = denied.reduce((bits, name) => bits | permissions[name], 0n);
    this.#events.channelChanged(channel, 'CHANNEL_UPDATE');
  }

  /** Gives the bot permissions that it doesn't have by default. */
  grants(channel: ChannelState, ...granted: readonly Permission[]): void {
    channel.granted = granted.reduce((bits, name) => bits | permissions[name], 0n);
    this.#events.channelChanged(channel, 'CHANNEL_UPDATE');
  }

  joins(guild: GuildState, user: DiscordUser): void {
    const member = this.#world.addMember(guild, user);
    this.#events.memberChanged(guild, 'GUILD_MEMBER_ADD', this.#platform.render.memberWithUser(member));
  }

  leaves(guild: GuildState, user: DiscordUser): void {
    guild.members.delete(user.id);
    this.#events.memberChanged(guild, 'GUILD_MEMBER_REMOVE', { user: this.#platform.render.user(user) });
  }

  removesBot(guild: GuildState): void {
    this.#events.guildGone(guild, false);
    guild.isBotIn = false;
  }

  /** Adds the bot to an existing guild or a new one. */
  addsBot(guild: GuildState): void {
    guild.isBotIn = true;
    guild.joinedAt = this.#world.now();
    this.#world.addMember(guild, this.#world.bot);
    this.#events.guildAvailable(guild);
  }

  /** Makes a guild temporarily unavailable. */
  losesGuild(guild: GuildState): void {
    this.#events.guildGone(guild, true);
    guild.isUnavailable = true;
  }

  findsGuild(guild: GuildState): void {
    guild.isUnavailable = false;
    this.#events.guildAvailable(guild);
  }
}
