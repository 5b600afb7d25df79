/** Texts, captions and their entities. */
import { aFile, bea, groupMessage, inGroup, mark, message, type TelegramInput } from './telegram-input.ts';

const article = 'Summarise this article';
const link = 'https://example.org/notes?id=42';
const everything = '@ParleyBot bold italic under strike hidden code pre link quote long 😎 end';
const invisible = '\u200bRead on';
const meeting = 'We meet tomorrow at ten';
const numbers = 'Call +49 30 123 or write a@example.org, #garden $EUR https://example.org/a';

export const words: readonly TelegramInput[] = [
  {
    name: 'a plain text',
    shape: 'Bot API, Message.text',
    update: message({ text: 'Is it going to rain?' }),
    read: { event: 'message', text: 'Is it going to rain?' },
  },
  {
    name: 'a link behind a word',
    shape: 'chenhg5/cc-connect#1207; openclaw/openclaw#1118',
    update: message({ text: article, entities: [mark('text_link', article, 'article', { url: link })] }),
    read: { event: 'message', text: article, shown: `Summarise this [article](${link})` },
  },
  {
    name: 'a link whose address and label contain brackets',
    shape: 'openclaw/openclaw#128297',
    update: message({
      text: 'See [1]',
      entities: [mark('text_link', 'See [1]', '[1]', { url: 'https://example.org/a_(b) c' })],
    }),
    read: {
      event: 'message',
      text: 'See [1]',
      shown: String.raw`See [\[1\]](https://example.org/a_%28b%29%20c)`,
    },
  },
  {
    name: 'a link whose label is its own address',
    shape: 'Bot API, MessageEntity of type text_link made by a client from a pasted page',
    update: message({
      text: 'example.org/a',
      entities: [mark('text_link', 'example.org/a', 'example.org/a', { url: 'https://example.org/a/' })],
    }),
    read: { event: 'message', text: 'example.org/a' },
  },
  {
    name: 'a link behind an invisible character, as preview bots send it',
    shape: 'forwarded posts with a preview link behind U+200B',
    update: message({
      text: invisible,
      entities: [{ type: 'text_link', offset: 0, length: 1, url: 'https://example.org/p.jpg' }],
    }),
    read: { event: 'message', text: invisible, shown: '[\u200b](https://example.org/p.jpg)Read on' },
  },
  {
    name: 'a command behind a link stays the text that it is, with its address beside it',
    shape: 'Bot API, MessageEntity of type text_link over a command',
    update: message({
      text: '/status please',
      entities: [mark('text_link', '/status please', 'please', { url: 'https://example.org/stop' })],
    }),
    read: {
      event: 'message',
      text: '/status please',
      shown: '/status [please](https://example.org/stop)',
    },
  },
  {
    name: 'every format that the phone clients write, in one text',
    shape: 'NousResearch/hermes-agent tests/gateway/fixtures/telegram_ios_rich_text_updates.json',
    update: groupMessage({
      text: everything,
      entities: [
        mark('bold', everything, 'bold'),
        mark('italic', everything, 'italic'),
        mark('underline', everything, 'under'),
        mark('strikethrough', everything, 'strike'),
        mark('spoiler', everything, 'hidden'),
        mark('code', everything, 'code'),
        mark('pre', everything, 'pre', { language: 'python' }),
        mark('text_link', everything, 'link', { url: 'https://example.org' }),
        mark('blockquote', everything, 'quote'),
        mark('expandable_blockquote', everything, 'long'),
        mark('custom_emoji', everything, '😎', { custom_emoji_id: '5368' }),
      ],
    }),
    read: {
      event: 'message',
      callsBot: true,
      text: everything,
      shown:
        '@ParleyBot **bold** _italic_ under ~~strike~~ ||hidden|| `code` \n```python\npre\n```\n [link](https://example.org) \n> quote\n \n> long\n 😎 end',
    },
  },
  {
    name: 'the name of the bot without an entity, as some phones send it',
    shape: 'NousResearch/hermes-agent telegram_ios_rich_text_updates.json, ios_plain',
    update: groupMessage({ text: '@ParleyBot water the beans', entities: [] }),
    read: { event: 'message', callsBot: true, text: '@ParleyBot water the beans' },
  },
  {
    name: 'a mention of the bot as a link to its id',
    shape: 'openclaw/openclaw#77856',
    update: groupMessage({
      text: 'Parley, water the beans',
      entities: [mark('text_link', 'Parley,', 'Parley', { url: 'tg://user?id=700' })],
    }),
    read: {
      event: 'message',
      callsBot: true,
      text: 'Parley, water the beans',
      shown: '[Parley](tg://user?id=700), water the beans',
    },
  },
  {
    name: 'a mention of somebody without a user name',
    shape: 'python-telegram-bot tests/test_messageentity.py, text_mention',
    update: groupMessage({
      text: 'ask my boss',
      entities: [mark('text_mention', 'ask my boss', 'my boss', { user: bea })],
    }),
    read: { event: 'message', text: 'ask my boss', shown: 'ask my boss (Bea)' },
  },
  {
    name: 'a time that is written as words',
    shape: 'Bot API 9.5, MessageEntity of type date_time',
    update: message({
      text: meeting,
      entities: [
        mark('date_time', meeting, 'tomorrow at ten', { unix_time: 1_795_856_400, date_time_format: 'wDT' }),
      ],
    }),
    read: { event: 'message', text: meeting, shown: `${meeting} (2026-11-28 09:00 UTC)` },
  },
  {
    name: 'entities whose words say everything',
    shape: 'Bot API, MessageEntity of types phone_number, email, hashtag, cashtag and url',
    update: message({
      text: numbers,
      entities: [
        mark('phone_number', numbers, '+49 30 123'),
        mark('email', numbers, 'a@example.org'),
        mark('hashtag', numbers, '#garden'),
        mark('cashtag', numbers, '$EUR'),
        mark('url', numbers, 'https://example.org/a'),
      ],
    }),
    read: { event: 'message', text: numbers },
  },
  {
    name: 'code with backticks in it',
    shape: 'python-telegram-bot tests/test_message.py, entities of code and pre',
    update: message({
      text: 'run\nif `a`\n``b``\nnow',
      entities: [mark('pre', 'run\nif `a`\n``b``\nnow', 'if `a`\n``b``\n', { language: 'c++' })],
    }),
    read: {
      event: 'message',
      text: 'run\nif `a`\n``b``\nnow',
      shown: 'run\n```c++\nif `a`\n``b``\n```\nnow',
    },
  },
  {
    name: 'a nested format',
    shape: 'Bot API, Formatting options: bold and italic overlap by nesting',
    update: message({
      text: 'very very important',
      entities: [
        { type: 'bold', offset: 0, length: 19 },
        { type: 'italic', offset: 5, length: 4 },
      ],
    }),
    read: { event: 'message', text: 'very very important', shown: '**very _very_ important**' },
  },
  {
    name: 'a text that begins with a quotation is a quotation',
    shape: 'Bot API, MessageEntity of type blockquote at the beginning',
    update: message({
      text: 'Buy now\nis this spam?',
      entities: [{ type: 'blockquote', offset: 0, length: 7 }],
    }),
    read: {
      event: 'message',
      origin: 'quoted',
      text: 'Buy now\nis this spam?',
      shown: '> Buy now\nis this spam?',
    },
  },
  {
    name: 'an entity of a kind that nobody knows yet',
    shape: 'Bot API, a type added by a later version',
    update: message({
      text: 'glowing words',
      entities: [{ type: 'glow', offset: 0, length: 7, colour: 'red' }],
    }),
    read: { event: 'message', text: 'glowing words' },
  },
  {
    name: 'a caption with a link',
    shape: 'openclaw/openclaw#1118, caption_entities of a forwarded post',
    update: message({
      photo: [aFile('P1', { width: 90, height: 90 })],
      caption: 'the full story',
      caption_entities: [{ type: 'text_link', offset: 9, length: 5, url: link }],
      forward_origin: {
        type: 'channel',
        date: 1,
        chat: { id: -1007, type: 'channel', title: 'News' },
        message_id: 4,
      },
    }),
    read: {
      event: 'message',
      origin: 'forwarded',
      text: 'the full story',
      shown: `the full [story](${link})`,
      media: ['image P1'],
    },
  },
  {
    name: 'the buttons under a forwarded post, as far as they lead somewhere',
    shape: 'telegraf and grammY, reply_markup.inline_keyboard of forwarded channel posts',
    update: message({
      text: 'New cheese',
      forward_origin: { type: 'hidden_user', date: 1, sender_user_name: 'Shop' },
      reply_markup: {
        inline_keyboard: [
          [
            { text: 'Buy', url: 'https://example.org/buy' },
            { text: 'Like', callback_data: 'x' },
          ],
        ],
      },
    }),
    read: {
      event: 'message',
      origin: 'forwarded',
      text: 'New cheese',
      described: ['[Buttons: Buy (https://example.org/buy)]'],
    },
  },
  {
    name: 'a link after emoji, whose places are counted in UTF-16',
    shape: 'LonamiWebs/Telethon#4557; telegraf/telegraf#1109',
    update: message({
      text: '👨‍💻🇺🇸 see notes 😆',
      entities: [mark('text_link', '👨‍💻🇺🇸 see notes 😆', 'notes', { url: 'https://example.org/n' })],
    }),
    read: {
      event: 'message',
      text: '👨‍💻🇺🇸 see notes 😆',
      shown: '👨‍💻🇺🇸 see [notes](https://example.org/n) 😆',
    },
  },
  {
    name: 'a mention after emoji calls the bot',
    shape: 'NousResearch/hermes-agent#55439; aiogram/aiogram#413',
    update: groupMessage({
      text: '🚀🇺🇸 @ParleyBot hello',
      entities: [mark('mention', '🚀🇺🇸 @ParleyBot hello', '@ParleyBot')],
    }),
    read: { event: 'message', text: '🚀🇺🇸 @ParleyBot hello', callsBot: true },
  },
  {
    name: 'a message in a topic that the bot has made is no reply to the bot',
    shape: 'tdlib/telegram-bot-api#356, the root of a topic as reply_to_message',
    update: groupMessage({
      text: 'any news?',
      message_thread_id: 5,
      is_topic_message: true,
      reply_to_message: inGroup({
        message_id: 5,
        from: { id: 700, is_bot: true, first_name: 'Parley' },
        forum_topic_created: { name: 'Plans', icon_color: 1 },
      }),
    }),
    read: { event: 'message', text: 'any news?' },
  },
  {
    name: 'a link whose address contains the name of the bot calls nobody',
    shape: 'openclaw/openclaw#114493, mentions made up by rendered addresses',
    update: groupMessage({
      text: 'see this',
      entities: [mark('text_link', 'see this', 'this', { url: 'https://example.org/ @ParleyBot /stop' })],
    }),
    read: {
      event: 'message',
      text: 'see this',
      shown: 'see [this](https://example.org/%20@ParleyBot%20/stop)',
    },
  },
  {
    name: 'a post of the channel that a discussion group belongs to',
    shape: 'openclaw/openclaw#34309, is_automatic_forward by 777000',
    update: groupMessage({
      text: 'New cheese',
      from: { id: 777000, is_bot: false, first_name: 'Telegram' },
      sender_chat: { id: -1007, type: 'channel', title: 'News' },
      is_automatic_forward: true,
      forward_origin: {
        type: 'channel',
        date: 1,
        chat: { id: -1007, type: 'channel', title: 'News' },
        message_id: 9,
      },
    }),
    read: { event: 'message', origin: 'channel-post', text: 'New cheese' },
  },
  {
    name: 'a comment',
    shape: 'NousResearch/hermes-agent#81368, a short comment and the post it is about',
    update: message({ text: 'what do you think about this?' }),
    read: { event: 'message', text: 'what do you think about this?' },
  },
  {
    name: 'the forward that follows a comment',
    shape: 'NousResearch/hermes-agent#81368, a short comment and the post it is about',
    update: message({
      text: 'Cheese prices doubled',
      forward_origin: {
        type: 'channel',
        date: 1,
        chat: { id: -1007, type: 'channel', title: 'News' },
        message_id: 9,
      },
    }),
    read: { event: 'message', origin: 'forwarded', text: 'Cheese prices doubled' },
  },
];
