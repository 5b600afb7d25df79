import type { Events } from './events.ts';
import type { Interaction, Interactions } from './interactions.ts';
import { allAllowed, findMentions } from './mentions.ts';
import type { Platform } from './platform.ts';
import { unarchive } from './posting.ts';
import {
  channelTypes,
  type DiscordUser,
  messageTypes,
  type StandingMessage,
  type StoredFile,
  type Wire,
} from './types.ts';
import type { ChannelState, World } from './world.ts';

export type UserMessage = {
  readonly from: DiscordUser;
  /** If omitted: the direct conversation with `from`. */
  readonly channel?: ChannelState;
  readonly text?: string;
  readonly replyTo?: StandingMessage;
  readonly files?: readonly StoredFile[];
  /** Further fields of the message object: sticker_items, poll, webhook_id, message_snapshots … */
  readonly fields?: Wire;
  /** The type of a message that the platform writes itself: a member joined, a pin. */
  readonly type?: number;
};

/** What people do in conversations; each act changes the world and is reported to the gateway. */
export class People {
  readonly #platform: Platform;
  readonly #world: World;
  readonly #events: Events;
  readonly #interactions: Interactions;

  constructor(platform: Platform) {
    this.#platform = platform;
    this.#world = platform.world;
    this.#events = platform.events;
    this.#interactions = platform.interactions;
  }

  sends(message: UserMessage): StandingMessage {
    const { from, text = '', replyTo } = message;
    const channel = message.channel ?? this.#world.dmWith(from);
    if (channel.type === channelTypes.forum)
      throw new Error('test error: a forum holds posts; use places.postsInForum');
    unarchive(this.#platform, channel);
    const repliedUser = replyTo?.author.id;
    const standing = this.#world.add(channel, {
      author: from,
      type: message.type ?? (replyTo === undefined ? messageTypes.default : messageTypes.reply),
      text,
      mentioned: this.mentionsIn(channel, text, repliedUser),
      replyTo: replyTo?.id,
      files: message.files ?? [],
      fields: message.fields ?? {},
    });
    this.#events.messageCreated(standing);
    return standing;
  }

  edits(message: StandingMessage, text: string): StandingMessage {
    const before = this.#current(message);
    const channel = this.#world.channel(message.channelId);
    const replied = before.mentioned.users.includes(this.#authorOf(channel, before.replyTo) ?? '')
      ? this.#authorOf(channel, before.replyTo)
      : undefined;
    const after = this.#world.change(before, {
      text,
      mentioned: this.mentionsIn(channel, text, replied),
    });
    this.#events.messageUpdated(after);
    return after;
  }

  deletes(message: StandingMessage): void {
    const current = this.#current(message);
    this.#world.delete(current);
    this.#events.messageDeleted(current);
  }

  /** A moderator deletes several at once. */
  clears(channel: ChannelState, messages: readonly StandingMessage[]): void {
    for (const message of messages) this.#world.delete(this.#current(message));
    this.#events.messagesDeleted(
      channel,
      messages.map((message) => message.id),
    );
  }

  /** `emoji` is the emoji itself, or `name:id` for a guild's own. */
  reacts(message: StandingMessage, from: DiscordUser, emoji: string): void {
    const after = this.#world.react(this.#current(message), from.id, emoji, true);
    this.#events.reacted(after, from.id, emoji, true);
  }

  takesReactionBack(message: StandingMessage, from: DiscordUser, emoji: string): void {
    const after = this.#world.react(this.#current(message), from.id, emoji, false);
    this.#events.reacted(after, from.id, emoji, false);
  }

  types(from: DiscordUser, channel: ChannelState = this.#world.dmWith(from)): void {
    this.#events.typing(channel, from.id);
  }

  /** Uses a slash command that the bot has registered. */
  uses(command: {
    readonly from: DiscordUser;
    readonly name: string;
    readonly options?: Readonly<Record<string, string | number | boolean>>;
    readonly channel?: ChannelState;
  }): Interaction {
    const channel = command.channel ?? this.#world.dmWith(command.from);
    const registered = this.#registered(command.name, channel.guildId);
    const known = (registered.options ?? []) as readonly Wire[];
    const options = Object.entries(command.options ?? {}).map(([name, value]) => {
      const type = known.find((one) => one.name === name)?.type;
      if (type === undefined) throw new Error(`test error: /${command.name} has no option ${name}`);
      return { name, type, value };
    });
    const data = {
      id: registered.id,
      name: command.name,
      type: 1,
      ...(options.length === 0 ? {} : { options }),
    };
    return this.#interact(2, command.from, channel, data, undefined);
  }

  /** Presses a button under one of the bot's messages. */
  presses(message: StandingMessage, from: DiscordUser, customId: string): Interaction {
    const current = this.#current(message);
    if (!JSON.stringify(current.components).includes(JSON.stringify(customId)))
      throw new Error(`test error: message ${message.id} has no button ${customId}`);
    const channel = this.#world.channel(message.channelId);
    return this.#interact(3, from, channel, { custom_id: customId, component_type: 2, id: 2 }, current);
  }

  /** From now on the person accepts no direct messages from the bot. */
  blocks(user: DiscordUser): void {
    this.#world.dmWith(user).isBlocked = true;
  }

  unblocks(user: DiscordUser): void {
    this.#world.dmWith(user).isBlocked = false;
  }

  #current(message: StandingMessage): StandingMessage {
    return this.#world.message(message.channelId, message.id);
  }

  #authorOf(channel: ChannelState, messageId: string | undefined): string | undefined {
    return messageId === undefined ? undefined : channel.messages.get(messageId)?.author.id;
  }

  /** Returns whom a person's text pings in this channel. */
  mentionsIn(channel: ChannelState, text: string, repliedUser?: string) {
    const guild = this.#world.guildOf(channel);
    return findMentions(text, allAllowed, {
      isUser: (id) => this.#world.users.has(id),
      isRole: (id) => guild?.roles.get(id)?.isMentionable ?? false,
      mayPingEveryone: guild !== undefined,
      repliedUser,
    });
  }

  #registered(name: string, guildId: string | undefined): Wire {
    const { commands } = this.#platform;
    const all = [...(commands.get(guildId ?? '') ?? []), ...(commands.get('global') ?? [])];
    const command = all.find((one) => one.name === name && one.type === 1);
    if (command === undefined) throw new Error(`test error: the bot has registered no command /${name}`);
    return command;
  }

  #interact(
    type: Interaction['type'],
    from: DiscordUser,
    channel: ChannelState,
    data: Wire,
    message: StandingMessage | undefined,
  ): Interaction {
    const id = this.#world.ids.next();
    const interaction = this.#interactions.add({ id, type, from, channel, data, message });
    const guild = this.#world.guildOf(channel);
    const { render } = this.#platform;
    const member = guild?.members.get(from.id);
    const all = String(2n ** 50n - 1n);
    const who =
      guild === undefined || member === undefined
        ? { user: render.user(from) }
        : { guild_id: guild.id, member: { ...render.memberWithUser(member), permissions: all } };
    this.#events.interaction(guild?.id, {
      id,
      application_id: this.#world.bot.id,
      type,
      token: interaction.token,
      version: 1,
      data,
      channel_id: channel.id,
      channel: { ...render.channel(channel), permissions: all },
      ...who,
      ...(guild === undefined ? {} : { guild: { id: guild.id, locale: 'en-US', features: [] } }),
      ...(message === undefined ? {} : { message: render.message(message, true) }),
      app_permissions: all,
      locale: 'en-US',
      ...(guild === undefined ? {} : { guild_locale: 'en-US' }),
      entitlements: [],
      authorizing_integration_owners: guild === undefined ? { 1: from.id } : { 0: guild.id },
      context: guild === undefined ? 1 : 0,
      attachment_size_limit: 10 * 1024 * 1024,
    });
    return interaction;
  }
}

/** Returns the text that mentions a person. */
export const mention = (user: DiscordUser): string => `<@${user.id}>`;
