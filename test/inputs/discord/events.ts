/** Changes to messages, notes by Discord itself, and what is no message. */
import {
  ada,
  aFile,
  bob,
  bot,
  botUser,
  changed,
  changedOnly,
  type DiscordInput,
  editedAt,
  type Fields,
  fileRef,
  general,
  guildId,
  id,
  original,
  posted,
} from './discord-input.ts';

const link = { type: 'article', url: 'https://example.org/news', title: 'Rain' };
const updates = 'discord-api-docs #1669';

const edits: readonly DiscordInput[] = [
  {
    name: 'an edit of a text',
    shape: 'discord-api-docs pull request 7017',
    dispatch: changed({ content: 'good evening' }),
    read: { event: 'edit', text: 'good evening' },
  },
  {
    name: 'an edit to a text with a picture and a card',
    shape: 'discord-api-docs pull request 7017',
    dispatch: changed({
      content: 'both',
      attachments: [aFile('sun.png')],
      embeds: [{ type: 'rich', title: 'Sun' }],
    }),
    read: { event: 'edit', text: 'both', described: ['[Embed] Sun'], media: [`image ${fileRef('sun.png')}`] },
  },
  {
    name: 'an edit to a card alone',
    shape: updates,
    dispatch: changed({ embeds: [{ type: 'rich', title: 'Disk is well' }] }),
    read: { event: 'edit', described: ['[Embed] Disk is well'] },
  },
  {
    name: 'an edit to a picture alone, by taking away its words',
    shape: 'discord-api-docs pull request 7017',
    dispatch: changed({ attachments: [aFile('sun.png')] }),
    read: { event: 'edit', media: [`image ${fileRef('sun.png')}`] },
  },
  {
    name: 'an edit of a webhook’s text',
    shape: 'discord-api-docs, Edit Webhook Message',
    dispatch: changed({ content: 'done', webhook_id: '5', author: { id: '5', username: 'Hook', bot: true } }),
    read: { event: 'edit', text: 'done' },
  },
  {
    name: 'an edit that names only what has changed, without an author',
    shape: 'Discord.Net pull request 1858',
    dispatch: changedOnly({ content: 'good evening', edited_timestamp: editedAt }),
    read: { event: 'edit', text: 'good evening' },
  },
  {
    name: 'an edit that does not name its words',
    shape: 'discordrb #507',
    dispatch: changedOnly({ edited_timestamp: editedAt, attachments: [] }),
    read: { event: 'edit' },
  },
  {
    name: 'an edit without the content that only Message Content brings',
    shape: 'discord-api-docs #5406',
    dispatch: changed({}),
    read: { event: 'edit' },
  },
  {
    name: 'an edit whose words are null',
    shape: 'discord.js #6878',
    dispatch: changed({ content: null, embeds: [{ type: 'rich', title: 'Sun' }] }),
    read: { event: 'edit' },
  },
  {
    name: 'an edit to a field that nobody knows',
    shape: 'input 02, as Discord would send it',
    dispatch: changed({ hologram: { size: 3 } }),
    read: { event: 'edit', unknown: ['hologram'] },
  },
  {
    name: 'a preview that Discord has found for a link',
    shape: 'discord.py #273; discord-api-docs #5406',
    dispatch: changed({ content: link.url, embeds: [link], edited_timestamp: null }),
  },
  {
    name: 'a preview that Discord has found, as a partial update',
    shape: 'discordgo #192; discord-api-docs #1669',
    dispatch: changedOnly({ embeds: [link] }),
  },
  {
    name: 'a message that was pinned',
    shape: 'discord.py #273',
    dispatch: changed({ content: 'good morning', pinned: true, edited_timestamp: null }),
  },
  {
    name: 'a thread that was started on a message',
    shape: 'discord-api-docs, HAS_THREAD',
    dispatch: changed({ content: 'good morning', flags: 1 << 5, edited_timestamp: null }),
  },
  { name: 'an update of nothing', shape: 'discordrb #507', dispatch: changedOnly({}) },
  {
    name: 'an edit of the bot’s own message',
    shape: 'discord-api-docs, Edit Message',
    dispatch: changed({ content: 'Yes.', author: botUser }),
  },
];

/** Something that Discord itself says, refused under this name. */
function note(type: number, what: string, fields: Fields = {}): DiscordInput {
  return {
    name: `the note that ${what}`,
    shape: 'discord-api-docs, Message Types',
    dispatch: posted({ type, ...fields }),
    read: { event: 'unsupported', refused: `message-type-${type}: Discord’s note: ` },
  };
}

const notes: readonly DiscordInput[] = [
  note(1, 'somebody was added to a group chat', { mentions: [bob] }),
  note(2, 'somebody left a group chat', { mentions: [bob] }),
  note(3, 'there was a call', { call: { participants: [ada.id], ended_timestamp: null } }),
  note(4, 'a channel was renamed', { content: 'gardens' }),
  note(5, 'a channel has a new icon'),
  note(6, 'a message was pinned', { message_reference: { channel_id: general, message_id: '5' } }),
  note(7, 'somebody joined'),
  note(8, 'a server was boosted', { content: '3' }),
  note(12, 'a channel follows another', { content: 'News #releases' }),
  note(22, 'people could be invited'),
  note(24, 'a message was blocked', {
    embeds: [{ type: 'auto_moderation_message', description: 'a bad word' }],
  }),
  note(25, 'somebody subscribed', {
    role_subscription_data: { tier_name: 'Gold', total_months_subscribed: 2 },
  }),
  note(27, 'a stage began', { content: 'Talk' }),
  note(36, 'the security actions are on', { content: '2026-11-27T10:00:00Z' }),
  note(44, 'somebody bought something', { purchase_notification: { type: 0 } }),
];

const where = { channel_id: general, guild_id: guildId };
const target = { ...where, message_id: id, user_id: ada.id };
const acts: readonly DiscordInput[] = [
  {
    name: 'a deleted message',
    shape: 'discord-api-docs, Message Delete',
    dispatch: { t: 'MESSAGE_DELETE', d: { id, ...where } },
    read: { event: 'delete' },
  },
  {
    name: 'messages deleted together',
    shape: 'discord-api-docs, Message Delete Bulk',
    dispatch: { t: 'MESSAGE_DELETE_BULK', d: { ids: [id], ...where } },
    read: { event: 'delete' },
  },
  {
    name: 'a reaction',
    shape: 'discord-api-docs, Message Reaction Add',
    dispatch: {
      t: 'MESSAGE_REACTION_ADD',
      d: {
        ...{
          ...target,
          emoji: { id: null, name: '🔥' },
          member: { user: ada, roles: [] },
          type: 0,
          burst: false,
        },
        message_author_id: bot.id,
      },
    },
    read: { event: 'reaction' },
  },
  {
    name: 'a reaction with an emoji that was deleted',
    shape: 'discord-api-docs, Emoji Object, name null',
    dispatch: {
      t: 'MESSAGE_REACTION_REMOVE',
      d: { ...target, emoji: { id: '1100000000000000009', name: null } },
    },
    read: { event: 'reaction' },
  },
  {
    name: 'a super reaction',
    shape: 'discord-api-docs, Reaction Types, burst',
    dispatch: {
      t: 'MESSAGE_REACTION_ADD',
      d: { ...target, emoji: { id: null, name: '🎉' }, type: 1, burst: true, burst_colors: ['#fff'] },
    },
    read: { event: 'reaction' },
  },
  {
    name: 'a vote',
    shape: 'discord-api-docs, Message Poll Vote Add',
    dispatch: { t: 'MESSAGE_POLL_VOTE_ADD', d: { ...target, answer_id: 2 } },
    read: { event: 'reaction' },
  },
  {
    name: 'a vote taken back',
    shape: 'discord-api-docs, Message Poll Vote Remove',
    dispatch: { t: 'MESSAGE_POLL_VOTE_REMOVE', d: { ...target, answer_id: 2 } },
    read: { event: 'reaction' },
  },
  ...[
    'MESSAGE_REACTION_REMOVE_ALL',
    'TYPING_START',
    'CHANNEL_PINS_UPDATE',
    'VOICE_CHANNEL_STATUS_UPDATE',
    'NEW_2031',
  ].map((t) => ({
    name: `the report ${t}, which is about no words`,
    shape: 'discord-api-docs, Gateway Events',
    dispatch: { t, d: target },
  })),
];

const used: Fields = {
  ...{ id: '1460000000000000077', application_id: bot.id, token: 'aW50ZXI:x', version: 1, ...where },
  ...{
    channel: { id: general, type: 0 },
    member: { user: ada, roles: [], permissions: '0' },
    locale: 'en-US',
  },
  ...{ app_permissions: '0', entitlements: [], context: 0, authorizing_integration_owners: { 0: guildId } },
};
const interactions: readonly DiscordInput[] = [
  {
    name: 'a slash command',
    shape: 'discord-api-docs, Interaction Object',
    dispatch: {
      t: 'INTERACTION_CREATE',
      d: {
        ...used,
        type: 2,
        data: { id: '5', type: 1, name: 'queue', options: [{ name: 'text', type: 3, value: 'x' }] },
      },
    },
    read: { event: 'message', text: '/queue x', callsBot: true },
  },
  {
    name: 'a button, with the message that contains it',
    shape: 'discord-api-docs pull request 7831',
    dispatch: {
      t: 'INTERACTION_CREATE',
      d: {
        ...used,
        type: 3,
        message: original({ author: botUser, flags: 64 }),
        data: { custom_id: 'ok', component_type: 2 },
      },
    },
    read: { event: 'button' },
  },
  ...(
    [
      ['a command on a message', 2, { type: 3, name: 'Translate', target_id: id }, 'context-menu-command: '],
      ['a suggestion for a command', 4, { type: 1, name: 'queue' }, 'interaction-type-4: '],
      ['a dialog that was sent', 5, { custom_id: 'x', components: [] }, 'interaction-type-5: '],
      ['an interaction of a kind that nobody knows yet', 42, {}, 'interaction-type-42: '],
    ] as const
  ).map(([name, type, data, refused]) => ({
    name,
    shape: 'discord-api-docs, Interaction Types',
    dispatch: { t: 'INTERACTION_CREATE', d: { ...used, type, data } },
    read: { event: 'unsupported', refused } as const,
  })),
];

export const events: readonly DiscordInput[] = [...edits, ...notes, ...acts, ...interactions];
