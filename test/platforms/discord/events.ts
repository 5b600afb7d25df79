import type { Gateway } from './gateway.ts';
import { intents, type Privileged } from './intents.ts';
import type { StandingMessage, Wire } from './types.ts';
import { emojiOf, type Renderer } from './wire.ts';
import type { ChannelState, GuildState, World } from './world.ts';

type EventDeps = {
  readonly world: World;
  readonly gateway: Gateway;
  readonly render: Renderer;
  readonly now: () => number;
  readonly privileged: Privileged;
};

/** What the gateway reports about each change. Nothing is reported about channels that the bot can't see. */
export class Events {
  readonly #deps: EventDeps;

  constructor(deps: EventDeps) {
    this.#deps = deps;
  }

  /** Includes the nonce, which appears here and in the answer to the send, and is stored nowhere. */
  messageCreated(message: StandingMessage): void {
    this.#message('MESSAGE_CREATE', message, nonceOf(message));
  }

  messageUpdated(message: StandingMessage): void {
    this.#message('MESSAGE_UPDATE', message);
  }

  messageDeleted(message: StandingMessage): void {
    const channel = this.#deps.world.channel(message.channelId);
    const data = { id: message.id, channel_id: channel.id, ...guildOf(channel) };
    this.#inChannel('MESSAGE_DELETE', channel, messageIntent(channel), () => data);
  }

  messagesDeleted(channel: ChannelState, ids: readonly string[]): void {
    const data = { ids, channel_id: channel.id, ...guildOf(channel) };
    this.#inChannel('MESSAGE_DELETE_BULK', channel, messageIntent(channel), () => data);
  }

  reacted(message: StandingMessage, userId: string, key: string, isAdded: boolean): void {
    const { world, render } = this.#deps;
    const channel = world.channel(message.channelId);
    const member = world.guildOf(channel)?.members.get(userId);
    const intent = isDirect(channel) ? intents.directMessageReactions : intents.guildMessageReactions;
    const data = {
      user_id: userId,
      channel_id: channel.id,
      message_id: message.id,
      ...guildOf(channel),
      emoji: emojiOf(key),
      burst: false,
      type: 0,
      ...(isAdded ? { message_author_id: message.author.id } : {}),
      ...(isAdded && member !== undefined ? { member: render.memberWithUser(member) } : {}),
    };
    const name = isAdded ? 'MESSAGE_REACTION_ADD' : 'MESSAGE_REACTION_REMOVE';
    this.#inChannel(name, channel, intent, () => data);
  }

  typing(channel: ChannelState, userId: string): void {
    const { world, render, now } = this.#deps;
    const member = world.guildOf(channel)?.members.get(userId);
    const intent = isDirect(channel) ? intents.directMessageTyping : intents.guildMessageTyping;
    const data = {
      channel_id: channel.id,
      user_id: userId,
      timestamp: Math.floor(now() / 1000),
      ...guildOf(channel),
      ...(member === undefined ? {} : { member: render.memberWithUser(member) }),
    };
    this.#inChannel('TYPING_START', channel, intent, () => data);
  }

  channelChanged(channel: ChannelState, event: string, extra: Wire = {}): void {
    const data = () => ({ ...this.#deps.render.channel(channel), ...extra });
    const { guildId } = channel;
    this.#deps.gateway.dispatch({ t: event, intent: intents.guilds, guildId, data });
  }

  threadChanged(channel: ChannelState, event: 'THREAD_CREATE' | 'THREAD_UPDATE', extra: Wire = {}): void {
    const { render } = this.#deps;
    const data = () => ({ ...render.channel(channel), ...extra });
    this.#inChannel(event, channel, intents.guilds, data);
  }

  threadDeleted(channel: ChannelState): void {
    const { id, type, parentId } = channel;
    const data = { id, type, parent_id: parentId, ...guildOf(channel) };
    this.#inChannel('THREAD_DELETE', channel, intents.guilds, () => data);
  }

  guildAvailable(guild: GuildState): void {
    const data = () => this.#deps.render.guild(guild);
    this.#deps.gateway.dispatch({
      t: 'GUILD_CREATE',
      intent: intents.guilds,
      guildId: guild.id,
      data,
    });
  }

  /** Without `unavailable` the bot was removed; with it the guild is temporarily unavailable. */
  guildGone(guild: GuildState, isOutage: boolean): void {
    const data = () => ({ id: guild.id, ...(isOutage ? { unavailable: true } : {}) });
    this.#deps.gateway.dispatch({
      t: 'GUILD_DELETE',
      intent: intents.guilds,
      guildId: guild.id,
      data,
    });
  }

  memberChanged(guild: GuildState, event: 'GUILD_MEMBER_ADD' | 'GUILD_MEMBER_REMOVE', data: Wire): void {
    this.#deps.gateway.dispatch({
      t: event,
      intent: intents.guildMembers,
      guildId: guild.id,
      data: () => ({ ...data, guild_id: guild.id }),
    });
  }

  /** Reports an interaction, which needs no intent. */
  interaction(guildId: string | undefined, data: Wire): void {
    this.#deps.gateway.dispatch({ t: 'INTERACTION_CREATE', guildId, data: () => data });
  }

  #message(t: string, message: StandingMessage, extra: Wire = {}): void {
    const { world, render, privileged } = this.#deps;
    const channel = world.channel(message.channelId);
    this.#inChannel(t, channel, messageIntent(channel), ({ hasContent }) => ({
      ...render.messageEvent(message, hasContent && privileged.messageContent),
      ...extra,
    }));
  }

  #inChannel(
    t: string,
    channel: ChannelState,
    intent: number,
    data: (view: { readonly hasContent: boolean }) => Wire,
  ): void {
    const { world, gateway } = this.#deps;
    if (!world.botMay(channel, 'viewChannel')) return;
    gateway.dispatch({ t, intent, guildId: channel.guildId, data });
  }
}

const isDirect = (channel: ChannelState) => channel.guildId === undefined;

const messageIntent = (channel: ChannelState) =>
  isDirect(channel) ? intents.directMessages : intents.guildMessages;

const guildOf = ({ guildId }: ChannelState): Wire => (guildId === undefined ? {} : { guild_id: guildId });

export const nonceOf = ({ nonce }: StandingMessage): Wire => (nonce === undefined ? {} : { nonce });
