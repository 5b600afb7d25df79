/** Two bots on two client libraries with a common interface, to check whether the server is faithful. */
import {
  type AnyThreadChannel,
  Client,
  GatewayIntentBits,
  type Message,
  type PartialMessage,
  Partials,
} from 'discord.js';
import { type AnyTextableChannel, Client as OceanicClient } from 'oceanic.js';
import { makeRequest } from '../../../channels/discord/rest-request.ts';
import type { DiscordServer } from './server.ts';
import { messageFlags } from './types.ts';

export type Bot = {
  /** What the bot received, in order: `says <text>`, `edits <text>`, `deletes`, `reacts <emoji>`, `uses <name>` … */
  readonly heard: string[];
  readonly send: (channelId: string, text: string, nonce?: string) => Promise<string>;
  readonly reply: (channelId: string, messageId: string, text: string) => Promise<string>;
  readonly sendFile: (channelId: string, name: string, content: string) => Promise<string>;
  readonly edit: (channelId: string, messageId: string, text: string) => Promise<void>;
  readonly delete: (channelId: string, messageId: string) => Promise<void>;
  readonly react: (channelId: string, messageId: string, emoji: string) => Promise<void>;
  readonly unreact: (channelId: string, messageId: string, emoji: string) => Promise<void>;
  readonly type: (channelId: string) => Promise<void>;
  /** The texts after a message in the order of the list: newest first. */
  readonly listAfter: (channelId: string, messageId: string) => Promise<readonly string[]>;
  readonly openDm: (userId: string) => Promise<string>;
  readonly setCommands: (names: readonly string[]) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Starts a bot and resolves when it is ready. Rejects if it may not connect. */
export type StartBot = (server: DiscordServer) => Promise<Bot>;

const { Guilds, GuildMembers, GuildMessages, GuildMessageReactions, DirectMessages } = GatewayIntentBits;
const { DirectMessageReactions, MessageContent } = GatewayIntentBits;
const intents = [
  Guilds,
  GuildMembers,
  GuildMessages,
  GuildMessageReactions,
  DirectMessages,
  DirectMessageReactions,
  MessageContent,
];

/** A bot on discord.js. Commands are deferred and then answered; buttons answer immediately, visible to one reader. */
export async function startDiscordJs(server: DiscordServer): Promise<Bot> {
  const client = new Client({
    intents,
    partials: [Partials.Channel, Partials.Message, Partials.Reaction, Partials.User],
    // Its own requests would fail with a file once another version of its HTTP client is loaded.
    rest: { api: server.apiUrl, retries: 0, makeRequest },
    // The library waits 5 s between two identifies, which would only slow down the tests of that gap.
    ws: { buildIdentifyThrottler: () => ({ waitForIdentify: async () => undefined }) },
    allowedMentions: { parse: [] },
  });
  const heard: string[] = [];
  listenWithDiscordJs(client, heard);
  const ready = new Promise((resolve) => client.once('clientReady', resolve));
  await client.login(server.token);
  await ready;
  const channelOf = async (id: string) => {
    const channel = await client.channels.fetch(id);
    if (channel === null || !channel.isSendable()) throw new Error(`cannot send to ${id}`);
    return channel;
  };
  const messageOf = async (channelId: string, id: string) => (await channelOf(channelId)).messages.fetch(id);
  return {
    heard,
    send: async (channelId, content, nonce) =>
      (await (await channelOf(channelId)).send({ content, ...(nonce ? { nonce, enforceNonce: true } : {}) }))
        .id,
    reply: async (channelId, messageId, content) =>
      (await (await channelOf(channelId)).send({ content, reply: { messageReference: messageId } })).id,
    sendFile: async (channelId, name, content) =>
      (await (await channelOf(channelId)).send({ files: [{ attachment: Buffer.from(content), name }] })).id,
    edit: async (channelId, id, text) => void (await (await messageOf(channelId, id)).edit(text)),
    delete: async (channelId, id) => void (await (await messageOf(channelId, id)).delete()),
    react: async (channelId, id, emoji) => void (await (await messageOf(channelId, id)).react(emoji)),
    unreact: async (channelId, id, emoji) => {
      const message = await messageOf(channelId, id);
      await message.reactions.resolve(emoji)?.users.remove();
    },
    type: async (channelId) => (await channelOf(channelId)).sendTyping(),
    listAfter: async (channelId, after) => {
      const page = await (await channelOf(channelId)).messages.fetch({ after, limit: 100 });
      return [...page.values()].map((message) => message.content);
    },
    openDm: async (userId) => (await client.users.createDM(userId)).id,
    setCommands: async (names) => {
      await client.application?.commands.set(names.map((name) => ({ name, description: `does ${name}` })));
    },
    stop: () => client.destroy(),
  };
}

function listenWithDiscordJs(client: Client, heard: string[]): void {
  const isOwn = (message: Message | PartialMessage) => message.author?.id === client.user?.id;
  client.on('error', (error) => heard.push(`error ${error.message}`));
  client.on('messageCreate', (message) => isOwn(message) || heard.push(`says ${message.content}`));
  client.on('messageUpdate', (_, message) => isOwn(message) || heard.push(`edits ${message.content}`));
  client.on('messageDelete', (message) => isOwn(message) || heard.push('deletes'));
  client.on('messageReactionAdd', (reaction, user) => {
    if (user.id !== client.user?.id) heard.push(`reacts ${reaction.emoji.name}`);
  });
  client.on('messageReactionRemove', (reaction, user) => {
    if (user.id !== client.user?.id) heard.push(`unreacts ${reaction.emoji.name}`);
  });
  client.on('threadCreate', (thread: AnyThreadChannel) => heard.push(`thread ${thread.name}`));
  client.on('guildMemberAdd', (member) => heard.push(`joins ${member.user.username}`));
  client.on('guildMemberRemove', (member) => heard.push(`leaves ${member.user.username}`));
  client.on('guildDelete', (guild) => heard.push(`removed ${guild.name}`));
  client.on('interactionCreate', async (interaction) => {
    if (interaction.isChatInputCommand()) {
      heard.push(`uses ${interaction.commandName}`);
      await interaction.deferReply();
      await interaction.editReply(`done ${interaction.commandName}`);
      await interaction.followUp('and more');
    } else if (interaction.isButton()) {
      heard.push(`presses ${interaction.customId}`);
      await interaction.reply({ content: 'pressed', flags: messageFlags.ephemeral });
    }
  });
}

/** The same bot on oceanic.js. */
export async function startOceanic(server: DiscordServer): Promise<Bot> {
  const client = new OceanicClient({
    auth: `Bot ${server.token}`,
    allowedMentions: { everyone: false, roles: false, users: false, repliedUser: false },
    gateway: {
      intents: intents.reduce((bits, bit) => bits | bit, 0),
      reconnectDelay: () => 50,
      override: { timeBetweenShardConnects: 0 },
    },
    rest: { baseURL: `${server.apiUrl}/v10` },
  });
  const heard: string[] = [];
  listenWithOceanic(client, heard);
  const ready = new Promise<void>((resolve, reject) => {
    client.once('ready', () => resolve());
    // A refused connection is reported as an error event, because there is no promise to reject.
    client.once('error', (error) => reject(error));
  });
  await Promise.all([client.connect(), ready]);
  const { channels } = client.rest;
  const me = client.user.id;
  return {
    heard,
    send: async (channelId, content, nonce) => {
      const dedupe = nonce === undefined ? {} : { nonce, enforceNonce: true };
      return (await channels.createMessage<AnyTextableChannel>(channelId, { content, ...dedupe })).id;
    },
    reply: async (channelId, messageID, content) =>
      (await channels.createMessage(channelId, { content, messageReference: { messageID } })).id,
    sendFile: async (channelId, name, content) =>
      (await channels.createMessage(channelId, { files: [{ name, contents: Buffer.from(content) }] })).id,
    edit: async (channelId, id, content) => void (await channels.editMessage(channelId, id, { content })),
    delete: (channelId, id) => channels.deleteMessage(channelId, id),
    react: (channelId, id, emoji) => channels.createReaction(channelId, id, emoji),
    unreact: (channelId, id, emoji) => channels.deleteReaction(channelId, id, emoji),
    type: (channelId) => channels.sendTyping(channelId),
    listAfter: async (channelId, after) =>
      (await channels.getMessages(channelId, { after, limit: 100 })).map((message) => message.content),
    openDm: async (userId) => (await client.rest.users.createDM(userId)).id,
    setCommands: async (names) => {
      const commands = names.map((name) => ({ type: 1 as const, name, description: `does ${name}` }));
      await client.rest.applications.bulkEditGlobalCommands(me, commands);
    },
    stop: async () => client.disconnect(false),
  };
}

function listenWithOceanic(client: OceanicClient, heard: string[]): void {
  const isOwn = (id: string | undefined) => id === client.user.id;
  client.on('error', (error) => heard.push(`error ${error instanceof Error ? error.message : error}`));
  client.on('messageCreate', (message) => isOwn(message.author.id) || heard.push(`says ${message.content}`));
  client.on('messageUpdate', (message) => isOwn(message.author.id) || heard.push(`edits ${message.content}`));
  client.on('messageDelete', (message) => {
    if (!('author' in message) || !isOwn(message.author.id)) heard.push('deletes');
  });
  client.on('messageReactionAdd', (_, user, { emoji }) => {
    if (!isOwn(user.id)) heard.push(`reacts ${emoji.name}`);
  });
  client.on('messageReactionRemove', (_, user, { emoji }) => {
    if (!isOwn(user.id)) heard.push(`unreacts ${emoji.name}`);
  });
  client.on('threadCreate', (thread) => heard.push(`thread ${thread.name}`));
  client.on('guildMemberAdd', (member) => heard.push(`joins ${member.username}`));
  client.on('guildMemberRemove', (member) => heard.push(`leaves ${member.username}`));
  client.on('guildDelete', (guild) => heard.push(`removed ${'name' in guild ? guild.name : guild.id}`));
  client.on('interactionCreate', async (interaction) => {
    if (interaction.isCommandInteraction()) {
      heard.push(`uses ${interaction.data.name}`);
      await interaction.defer();
      await interaction.editOriginal({ content: `done ${interaction.data.name}` });
      await interaction.createFollowup({ content: 'and more' });
    } else if (interaction.isComponentInteraction()) {
      heard.push(`presses ${interaction.data.customID}`);
      await interaction.createMessage({ content: 'pressed', flags: messageFlags.ephemeral });
    }
  });
}
