/** Replies, and what they reply to. */
import {
  aFile,
  aMessage,
  bea,
  group,
  groupMessage,
  inGroup,
  message,
  type TelegramInput,
} from './telegram-input.ts';

const byBea = (fields: Readonly<Record<string, unknown>>) =>
  aMessage({ message_id: 77, from: bea, ...fields });
const groupReply = (
  fields: Readonly<Record<string, unknown>>,
  more: Readonly<Record<string, unknown>> = {},
) =>
  groupMessage({ text: 'what is this?', reply_to_message: inGroup({ message_id: 77, ...fields }), ...more });
const news = { type: 'channel', date: 1, chat: { id: -1007, type: 'channel', title: 'News' }, message_id: 9 };
const asked = 'what is this?';

/** A reply in a group to a message with these fields, and how the quoted message is read. */
function reply(
  name: string,
  shape: string,
  fields: Readonly<Record<string, unknown>>,
  quote: Omit<TelegramInput['read'], 'event'>,
): TelegramInput {
  return {
    name,
    shape,
    update: groupReply(fields),
    read: { event: 'message', text: asked, quote: { author: 'Bea', of: '77', ...quote } },
  };
}

export const quotes: readonly TelegramInput[] = [
  reply('a reply to a text', 'openclaw/openclaw#70576', { text: 'plant in May' }, { text: 'plant in May' }),
  reply(
    'a reply to a text with a link',
    'openclaw/openclaw#1118, the link of a quoted text',
    {
      text: 'see here',
      entities: [{ type: 'text_link', offset: 4, length: 4, url: 'https://example.org/h' }],
    },
    { text: 'see here', shown: 'see [here](https://example.org/h)' },
  ),
  reply(
    'a reply to a photo',
    'NousResearch/hermes-agent#22250',
    { photo: [aFile('P')] },
    { media: ['image P'] },
  ),
  reply(
    'a reply to a photo with words',
    'NousResearch/hermes-agent#22250',
    { photo: [aFile('P')], caption: 'our beans' },
    { text: 'our beans', media: ['image P'] },
  ),
  reply(
    'a reply to a document',
    '0xMaxMa/claude-gateway#468',
    { document: aFile('D', { file_name: 'plan.csv', mime_type: 'text/csv' }) },
    { media: ['file D'] },
  ),
  reply('a reply to a voice message', 'HKUDS/nanobot#1900', { voice: aFile('V') }, { media: ['voice V'] }),
  reply(
    'a reply to a sticker',
    'NousResearch/hermes-agent#23572',
    { sticker: aFile('K', { emoji: '🌱' }) },
    { described: ['[Sticker: 🌱]'], media: ['image K'] },
  ),
  reply(
    'a reply to a poll',
    'sipeed/picoclaw#2200, quoted messages other than text',
    { poll: { question: 'Pizza?', options: [{ text: 'Yes' }] } },
    { described: ['[Poll: Pizza?; 1) Yes]'] },
  ),
  reply(
    'a reply to a rich message',
    'NousResearch/hermes-agent#49534, reply_to_message with rich_message alone',
    {
      rich_message: {
        blocks: [
          { type: 'heading', text: 'Plan', size: 1 },
          { type: 'paragraph', text: 'dig' },
        ],
      },
    },
    { text: 'Plan\ndig', shown: '# Plan\n\ndig' },
  ),
  reply(
    'a reply to a message of a kind that nobody knows yet',
    'Bot API, a field added by a later version',
    { hologram: { size: 3 } },
    { unknown: ['hologram'] },
  ),
  {
    name: 'a reply with a chosen passage',
    shape: 'openclaw/openclaw#77582',
    update: groupReply(
      { text: 'plant in May, water in June' },
      { quote: { text: 'water in June', position: 14, is_manual: true } },
    ),
    read: { event: 'message', text: asked, quote: { author: 'Bea', of: '77', text: 'water in June' } },
  },
  {
    name: 'a reply with a chosen passage of the words under a photo',
    shape: 'openclaw/openclaw#77582, Bot API TextQuote.entities',
    update: groupReply(
      { photo: [aFile('P')], caption: 'our big beans' },
      { quote: { text: 'big', entities: [{ type: 'bold', offset: 0, length: 3 }], position: 4 } },
    ),
    read: {
      event: 'message',
      text: asked,
      quote: { author: 'Bea', of: '77', text: 'big', shown: '**big**', media: ['image P'] },
    },
  },
  {
    name: 'a reply to a task of a checklist',
    shape: 'Bot API 9.2, reply_to_checklist_task_id',
    update: groupReply(
      {
        checklist: {
          title: 'Garden',
          tasks: [
            { id: 1, text: 'dig' },
            { id: 2, text: 'sow' },
          ],
        },
      },
      { reply_to_checklist_task_id: 2 },
    ),
    read: {
      event: 'message',
      text: asked,
      quote: {
        author: 'Bea',
        of: '77',
        described: ['[Checklist: Garden; ☐ dig; ☐ sow]', '[About the task: sow]'],
      },
    },
  },
  {
    name: 'a reply to an option of a poll',
    shape: 'Bot API 10, reply_to_poll_option_id',
    update: groupReply(
      { poll: { question: 'Which?', options: [{ persistent_id: 'a', text: 'Soup' }] } },
      { reply_to_poll_option_id: 'a' },
    ),
    read: {
      event: 'message',
      text: asked,
      quote: { author: 'Bea', of: '77', described: ['[Poll: Which?; 1) Soup]', '[About the option: Soup]'] },
    },
  },
  {
    name: 'a reply to a post in another chat, with the chosen passage',
    shape: 'python-telegram-bot tests/test_reply.py, ExternalReplyInfo',
    update: message({
      text: asked,
      external_reply: { origin: news, message_id: 9 },
      quote: { text: 'Cheese', position: 0 },
    }),
    read: { event: 'message', text: asked, quote: { author: 'News', of: '9', text: 'Cheese' } },
  },
  {
    name: 'a reply to a photo in another chat',
    shape: 'aiogram test_external_reply_info.py',
    update: message({ text: asked, external_reply: { origin: news, photo: [aFile('X')] } }),
    read: { event: 'message', text: asked, quote: { author: 'News', media: ['image X'] } },
  },
  {
    name: 'a reply to a message in another chat that Telegram doesn’t show',
    shape: 'Bot API 7, ExternalReplyInfo without content',
    update: message({
      text: asked,
      external_reply: { origin: { type: 'hidden_user', date: 1, sender_user_name: 'Cas' } },
    }),
    read: {
      event: 'message',
      text: asked,
      quote: { author: 'Cas', described: ['[A message in another chat]'] },
    },
  },
  {
    name: 'a reply to a giveaway in another chat',
    shape: 'python-telegram-bot tests/test_reply.py, ExternalReplyInfo.giveaway',
    update: message({
      text: asked,
      external_reply: { origin: news, giveaway: { chats: [], winner_count: 1 } },
    }),
    read: { event: 'message', text: asked, quote: { author: 'News', described: ['[Giveaway: 1 winner]'] } },
  },
  {
    name: 'a reply to a story',
    shape: 'Bot API 7.1, reply_to_story',
    update: message({
      text: 'nice',
      reply_to_story: { chat: { id: 502, type: 'private', first_name: 'Bea' }, id: 3 },
    }),
    read: { event: 'message', text: 'nice', quote: { author: 'Bea', described: ['[Story]'] } },
  },
  {
    name: 'a message in a topic, which answers the message that opened it',
    shape: 'Bot API 6.3, reply_to_message with forum_topic_created',
    update: groupMessage({
      text: 'hello',
      is_topic_message: true,
      message_thread_id: 5,
      reply_to_message: {
        message_id: 5,
        date: 1,
        chat: group,
        forum_topic_created: { name: 'Plans', icon_color: 1 },
      },
    }),
    read: { event: 'message', text: 'hello' },
  },
  {
    name: 'a reply whose quoted message is broken',
    shape: 'servers that leave the chat of a quoted message out',
    update: message({ text: 'and this?', reply_to_message: { text: 'gone' } }),
    read: { event: 'message', text: 'and this?' },
  },
  {
    name: 'a reply to somebody’s photo in a private chat',
    shape: 'NousResearch/hermes-agent#37970',
    update: message({ text: 'and this?', reply_to_message: byBea({ photo: [aFile('P')] }) }),
    read: { event: 'message', text: 'and this?', quote: { author: 'Bea', of: '77', media: ['image P'] } },
  },
];
