/** Messages of words, and the shapes in which fields that don't matter come. */
import { adminRole } from '../../channels/discord/payloads.ts';
import {
  ada,
  aFile,
  bot,
  botUser,
  type DiscordInput,
  direct,
  fileRef,
  general,
  id,
  posted,
} from './discord-input.ts';

/** A message that consists of this text. */
function text(
  name: string,
  shape: string,
  fields: Readonly<Record<string, unknown>>,
  said: string,
): DiscordInput {
  return { name, shape, dispatch: posted(fields), read: { event: 'message', text: said } };
}

const plain = { content: 'good morning' };
const automated = { event: 'message', text: 'good morning', origin: 'automated' } as const;
const api = 'discord-api-docs, Message Object';

export const words: readonly DiscordInput[] = [
  text('a text', api, plain, 'good morning'),
  {
    name: 'a direct text without a server',
    shape: 'discord-api-docs, Message Create',
    dispatch: direct(plain),
    read: { event: 'message', text: 'good morning' },
  },
  text('a text whose nonce is null', 'discord-api-docs #1447', { ...plain, nonce: null }, 'good morning'),
  text('a text whose nonce is a number', 'kord #629', { ...plain, nonce: 6870 }, 'good morning'),
  text(
    'a text of a guest, who never joined',
    'twilight #2230',
    {
      ...plain,
      member: { nick: null, roles: [], joined_at: null, pending: false, flags: 0 },
    },
    'good morning',
  ),
  text(
    'a text whose optional fields are all null',
    'Javacord pull request 682',
    {
      ...plain,
      ...{ member: null, nonce: null, webhook_id: null, application_id: null, activity: null, poll: null },
      ...{ embeds: null, components: null, attachments: null, sticker_items: null, stickers: null },
      ...{ mentions: null, mention_roles: null, mention_channels: null, reactions: null, thread: null },
      ...{ message_reference: null, message_snapshots: null, interaction: null, interaction_metadata: null },
      ...{ application: null, call: null, role_subscription_data: null, position: null, resolved: null },
    },
    'good morning',
  ),
  text(
    'a text with few fields',
    'discord-rs #115',
    {
      ...plain,
      ...{ flags: undefined, embeds: undefined, attachments: undefined, components: undefined },
      ...{ mention_roles: undefined, nonce: undefined, type: undefined, member: undefined },
    },
    'good morning',
  ),
  text(
    'a silent text',
    'discord-api-docs, SUPPRESS_NOTIFICATIONS',
    { ...plain, flags: 1 << 12 },
    'good morning',
  ),
  text(
    'a text on which a thread hangs',
    'JDA #3114',
    {
      ...plain,
      flags: 1 << 5,
      thread: { id, type: 11, name: 'mornings', parent_id: general, member_count: 1 },
    },
    'good morning',
  ),
  text(
    'a text with the author’s new badges',
    'discord-api-docs, User Object',
    {
      ...plain,
      author: {
        ...ada,
        ...{
          primary_guild: null,
          clan: null,
          collectibles: null,
          avatar_decoration_data: null,
          public_flags: 0,
        },
      },
    },
    'good morning',
  ),
  text(
    'a text with counts of reactions, out of the history',
    api,
    {
      ...plain,
      reactions: [
        {
          ...{ count: 2, me: false, me_burst: false, burst_colors: [] },
          ...{ count_details: { burst: 0, normal: 2 }, emoji: { id: null, name: '🔥' } },
        },
      ],
    },
    'good morning',
  ),
  {
    name: 'a mention of the bot',
    shape: api,
    dispatch: posted({ content: `<@${bot.id}> hi`, mentions: [botUser] }),
    read: { event: 'message', text: '@parley hi', callsBot: true },
  },
  {
    name: 'a mention of the bot whose list of mentions is missing',
    shape: 'other implementations of Discord’s API',
    dispatch: posted({ content: `<@!${bot.id}> hi`, mentions: undefined }),
    read: { event: 'message', text: '@parley hi', callsBot: true },
  },
  text(
    'mentions of a person, a role, a channel, an emoji and a command',
    'discord-api-docs, Message Formatting',
    {
      content: `<@${ada.id}> <@&${adminRole}> <#${general}> <a:wave:1100000000000000009> </help me:1100000000000000008>`,
      mentions: [{ ...ada, member: { nick: 'Lady L', roles: [] } }],
      mention_roles: [adminRole],
    },
    '@Lady L @Boss #general :wave: /help me',
  ),
  text(
    'mentions that nobody can name',
    'discord-api-docs, Message Formatting',
    {
      content: '<@1111111111111111111> <#1111111111111111112> <t:1795776000:R>',
    },
    '<@1111111111111111111> <#1111111111111111112> <t:1795776000:R>',
  ),
  {
    name: 'a post of a followed channel, with that channel’s names',
    shape: 'discord-api-docs, Channel Mention Object',
    dispatch: posted({
      content: 'see <#1111111111111111112>',
      flags: 1 << 1,
      webhook_id: '1111111111111111113',
      mention_channels: [{ id: '1111111111111111112', guild_id: '9', name: 'releases', type: 5 }],
      message_reference: { channel_id: '1111111111111111114', guild_id: '9', message_id: '5' },
    }),
    read: { event: 'message', text: 'see #releases', origin: 'channel-post' },
  },
  {
    name: 'a text of a webhook',
    shape: 'discord-api-docs, Execute Webhook',
    dispatch: posted({
      ...plain,
      webhook_id: '1111111111111111113',
      application_id: null,
      member: undefined,
      author: { id: '1111111111111111113', username: 'Captain Hook', bot: true, discriminator: '0000' },
    }),
    read: automated,
  },
  {
    name: 'an answer to a command of another application',
    shape: 'midjourney-auto, message-values-refernce.js',
    dispatch: posted({
      ...plain,
      type: 20,
      webhook_id: '1111111111111111113',
      application_id: '1111111111111111113',
      interaction: { id: '5', type: 2, name: 'imagine', user: ada },
      interaction_metadata: { id: '5', type: 2, user: ada, authorizing_integration_owners: { 0: '9' } },
      author: { id: '1111111111111111113', username: 'Painter', bot: true },
    }),
    read: automated,
  },
  {
    name: 'words of a kind that nobody knows yet',
    shape: 'discord-api-docs, Message Types, a later one',
    dispatch: posted({ ...plain, type: 163 }),
    read: { event: 'message', text: 'good morning', origin: 'unknown' },
  },
  {
    name: 'a text beside a picture, a card and a field that nobody knows',
    shape: api,
    dispatch: posted({
      ...plain,
      attachments: [aFile('sun.png')],
      embeds: [{ type: 'rich', title: 'Weather' }],
      hologram: { size: 3 },
    }),
    read: {
      event: 'message',
      text: 'good morning',
      described: ['[Embed] Weather'],
      media: [`image ${fileRef('sun.png')}`],
    },
  },
  {
    name: 'nothing but a field that nobody knows',
    shape: 'input 05, as Discord would send it',
    dispatch: posted({ hologram: { size: 3 } }),
    read: { event: 'message', unknown: ['hologram'] },
  },
  {
    name: 'a message without the content that only Message Content brings',
    shape: 'discord-api-docs #5406',
    dispatch: posted({}),
    read: { event: 'unsupported', refused: 'message-type-0: ' },
  },
  {
    name: 'an empty message of a kind that nobody knows yet',
    shape: 'discord-api-docs, Message Types, a later one',
    dispatch: posted({ type: 163 }),
    read: { event: 'unsupported', refused: 'message-type-163: ' },
  },
];
