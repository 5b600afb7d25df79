/** A bot on a library that knows nothing of this server, to check whether the server is faithful. */
import {
  type AnyThreadChannel,
  Client,
  GatewayIntentBits,
  type Message,
  type PartialMessage,
  Partials,
} from 'discord.js';
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

/**
 * Resolves when it is ready; rejects if it may not connect. Commands are deferred and then answered; buttons are
 * answered immediately, visible to one reader.
 */
export async function startBot(server: DiscordServer): Promise<Bot> {
  const client = new Client({
    intents,
    partials: [Partials.Channel, Partials.Message, Partials.Reaction, Partials.User],
    rest: { api: server.apiUrl, retries: 0, makeRequest: requestWithBytes },
    // The library waits 5 s between two identifies, which would only slow down the tests of that gap.
    ws: { buildIdentifyThrottler: () => ({ waitForIdentify: async () => undefined }) },
    allowedMentions: { parse: [] },
  });
  const heard: string[] = [];
  listen(client, heard);
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

function listen(client: Client, heard: string[]): void {
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

/** Serializes a form, which fails as it is once another version of the library's HTTP client is loaded. */
const requestWithBytes: typeof makeRequest = async (url, init) => {
  if (!(init.body instanceof FormData)) return makeRequest(url, init);
  const form = new Response(init.body);
  const type = form.headers.get('content-type') ?? '';
  const body = new Uint8Array(await form.arrayBuffer());
  const headers = { ...(init.headers as Record<string, string>), 'content-type': type };
  return makeRequest(url, { ...init, body, headers });
};
