/** Rich messages (Bot API 10.1 and later), which have neither `text` nor `entities`. */
import { aFile, edited, groupMessage, message, type TelegramInput } from './telegram-input.ts';

const paragraph = (text: unknown) => ({ type: 'paragraph', text });
const bold = (text: unknown) => ({ type: 'bold', text });
const rich = (...blocks: readonly unknown[]) => message({ rich_message: { blocks } });

export const richMessages: readonly TelegramInput[] = [
  {
    name: 'a heading and a paragraph',
    shape: 'nanocoai/nanoclaw#3151, a paste from a web page',
    update: rich(
      { type: 'heading', text: 'Shopping list', size: 2 },
      paragraph(['Please buy ', bold('two lemons')]),
    ),
    read: {
      event: 'message',
      text: 'Shopping list\nPlease buy two lemons',
      shown: '## Shopping list\n\nPlease buy **two lemons**',
    },
  },
  {
    name: 'one plain paragraph, which has nothing to format',
    shape: 'NousResearch/hermes-agent#94871',
    update: rich(paragraph('water the beans')),
    read: { event: 'message', text: 'water the beans' },
  },
  {
    name: 'an ordered list with bold numbers, as typed in a private chat',
    shape: 'NousResearch/hermes-agent#94871 and #63491: items hold a label and blocks, not a text',
    update: rich({
      type: 'list',
      items: [
        { label: '1.', blocks: [paragraph([bold('Milk'), ', two'])], value: 1, type: '1' },
        { label: '2.', blocks: [paragraph('Bread')], value: 2, type: '1' },
      ],
    }),
    read: {
      event: 'message',
      text: '1. Milk, two\n2. Bread',
      shown: '1. **Milk**, two\n2. Bread',
    },
  },
  {
    name: 'a list in a list, with boxes to tick',
    shape: 'grammY, RichBlockListItem with has_checkbox',
    update: rich({
      type: 'list',
      items: [
        {
          label: '•',
          blocks: [
            paragraph('Garden'),
            {
              type: 'list',
              items: [
                { label: '•', blocks: [paragraph('dig')], has_checkbox: true, is_checked: true },
                { label: '•', blocks: [paragraph('sow')], has_checkbox: true },
              ],
            },
          ],
        },
      ],
    }),
    read: {
      event: 'message',
      text: '- Garden\n  - [x] dig\n  - [ ] sow',
    },
  },
  {
    name: 'a table with a caption, a link and a bar in its cells',
    shape: 'NousResearch/hermes-agent#49534, a table in a rich answer',
    update: rich({
      type: 'table',
      caption: 'Prices',
      cells: [
        [
          { text: 'Item', is_header: true, align: 'left', valign: 'top' },
          { text: 'Where', is_header: true, align: 'left', valign: 'top' },
        ],
        [
          { text: bold('42'), align: 'right', valign: 'top' },
          { text: { type: 'url', text: 'shop', url: 'https://example.org/s' }, align: 'left', valign: 'top' },
        ],
        [
          { text: 'a|b', align: 'left', valign: 'top' },
          { align: 'left', valign: 'top' },
        ],
      ],
    }),
    read: {
      event: 'message',
      text: 'Prices\nItem Where\n42 shop\na|b ',
      shown:
        'Prices\n| Item | Where |\n| --- | --- |\n| **42** | [shop](https://example.org/s) |\n| a\\|b |  |',
    },
  },
  {
    name: 'code, a rule, a formula and a footer',
    shape: 'Bot API 10.1, RichBlockPreformatted, Divider, MathematicalExpression and Footer',
    update: rich(
      { type: 'pre', text: 'print(1)', language: 'python' },
      { type: 'divider' },
      { type: 'mathematical_expression', expression: 'E = mc^2' },
      paragraph(['where ', { type: 'mathematical_expression', expression: 'm' }, ' is mass']),
      { type: 'footer', text: 'from my notes' },
    ),
    read: {
      event: 'message',
      text: 'print(1)\nE = mc^2\nwhere m is mass\nfrom my notes',
      shown: '```python\nprint(1)\n```\n\n---\n\n$$E = mc^2$$\n\nwhere $m$ is mass\n\nfrom my notes',
    },
  },
  {
    name: 'every mark inside a paragraph',
    shape: 'Bot API 10.1, the kinds of RichText',
    update: rich(
      paragraph([
        { type: 'italic', text: 'i' },
        ' ',
        { type: 'underline', text: 'u' },
        ' ',
        { type: 'strikethrough', text: 's' },
        ' ',
        { type: 'spoiler', text: 'h' },
        ' H',
        { type: 'subscript', text: '2' },
        'O x',
        { type: 'superscript', text: '2' },
        ' ',
        { type: 'marked', text: 'm' },
        ' ',
        { type: 'code', text: 'c' },
        ' ',
        { type: 'custom_emoji', custom_emoji_id: '5', alternative_text: '🍋' },
        ' ',
        { type: 'email_address', text: 'write', email_address: 'a@example.org' },
        ' ',
        { type: 'phone_number', text: '+49 30', phone_number: '+4930' },
        ' ',
        { type: 'hashtag', text: '#garden', hashtag: 'garden' },
        ' ',
        { type: 'cashtag', text: '$EUR', cashtag: 'EUR' },
        ' ',
        { type: 'bank_card_number', text: '4242', bank_card_number: '4242' },
        ' ',
        { type: 'date_time', text: 'at ten', unix_time: 1_795_856_400, date_time_format: 'wDT' },
      ]),
    ),
    read: {
      event: 'message',
      text: 'i u s h H2O x2 m c 🍋 write +49 30 #garden $EUR 4242 at ten',
      shown:
        '_i_ u ~~s~~ ||h|| H<sub>2</sub>O x<sup>2</sup> ==m== `c` 🍋 [write](mailto:a@example.org) [+49 30](tel:+4930) #garden $EUR 4242 at ten (2026-11-28 09:00 UTC)',
    },
  },
  {
    name: 'a mention and a command for the bot, in a group',
    shape: 'NousResearch/hermes-agent#63485, a rich message in a supergroup',
    update: groupMessage({
      rich_message: {
        blocks: [
          paragraph([
            { type: 'mention', text: '@ParleyBot', username: 'ParleyBot' },
            ' what is ',
            bold('this'),
            '?',
          ]),
        ],
      },
    }),
    read: {
      event: 'message',
      callsBot: true,
      text: '@ParleyBot what is this?',
      shown: '@ParleyBot what is **this**?',
    },
  },
  {
    name: 'a person in a group who is mentioned by name',
    shape: 'Bot API 10.1, RichTextTextMention',
    update: groupMessage({
      rich_message: {
        blocks: [
          paragraph([
            'ask ',
            { type: 'text_mention', text: 'her', user: { id: 502, is_bot: false, first_name: 'Bea' } },
          ]),
        ],
      },
    }),
    read: { event: 'message', text: 'ask her', shown: 'ask her (Bea)' },
  },
  {
    name: 'quotations with their authors, and a part that is folded away',
    shape: 'Bot API 10.1 and 10.3, RichBlockBlockQuotation, PullQuotation and Details',
    update: rich(
      paragraph('Look:'),
      { type: 'blockquote', blocks: [paragraph('one'), paragraph('two')], credit: 'Bea' },
      { type: 'expandable_blockquote', text: 'long', credit: 'Cas' },
      { type: 'pullquote', text: 'short' },
      { type: 'details', summary: 'More', blocks: [paragraph('inside')] },
    ),
    read: {
      event: 'message',
      text: 'Look:\none\ntwo\nlong\nshort\nMore\ninside',
      shown: 'Look:\n\n> one\n> \n> two\n> — Bea\n\n> long\n> — Cas\n\n> short\n\n**More**\ninside',
    },
  },
  {
    name: 'a message that begins with a quotation',
    shape: 'Bot API 10.1, RichBlockBlockQuotation at the beginning',
    update: rich({ type: 'blockquote', blocks: [paragraph('/stop')] }, paragraph('what is this?')),
    read: {
      event: 'message',
      origin: 'quoted',
      text: '/stop\nwhat is this?',
      shown: '> /stop\n\nwhat is this?',
    },
  },
  {
    name: 'a forwarded post with a picture and its caption',
    shape: 'NousResearch/hermes-agent#81368, a forwarded post of blocks with a photo',
    update: message({
      forward_origin: {
        type: 'channel',
        date: 1,
        chat: { id: -1007, type: 'channel', title: 'News' },
        message_id: 9,
      },
      rich_message: {
        blocks: [
          paragraph('Cheese'),
          { type: 'photo', photo: [aFile('S'), aFile('L')], caption: { text: 'a wheel', credit: 'Bea' } },
        ],
      },
    }),
    read: {
      event: 'message',
      origin: 'forwarded',
      text: 'Cheese\na wheel\n— Bea',
      shown: 'Cheese\n\n[photo: a wheel\n— Bea]',
      media: ['image L'],
    },
  },
  {
    name: 'every kind of file as a block',
    shape:
      'Bot API 10.1 and 10.3, RichBlockCollage, Slideshow, Animation, Audio, Document, Video and VoiceNote',
    update: rich(
      {
        type: 'collage',
        blocks: [
          { type: 'video', video: aFile('V') },
          { type: 'animation', animation: aFile('A') },
        ],
        caption: { text: 'two' },
      },
      { type: 'slideshow', blocks: [{ type: 'audio', audio: aFile('M', { title: 'Song' }) }] },
      { type: 'document', document: aFile('D', { file_name: 'a.pdf', mime_type: 'application/pdf' }) },
      { type: 'voice_note', voice_note: aFile('N') },
      { type: 'voice_note' },
    ),
    read: {
      event: 'message',
      text: 'two',
      shown: '[video]\n\n[animation]\ntwo\n\n[audio]\n\n[document]\n\n[voice note]\n\n[voice note]',
      media: ['video V', 'video A', 'audio M', 'file D', 'voice N'],
    },
  },
  {
    name: 'a map and buttons',
    shape: 'Bot API 10.1 and 10.3, RichBlockMap and RichBlockButtons',
    update: rich(
      { type: 'map', location: { latitude: 41.9, longitude: 12.5 }, zoom: 14, caption: { text: 'here' } },
      {
        type: 'buttons',
        buttons: [
          { text: 'Go', url: 'https://example.org/go' },
          { text: 'No', callback_data: 'n' },
        ],
      },
    ),
    read: {
      event: 'message',
      text: '📍 41.9, 12.5\nhere\nGo No',
      shown: '📍 41.9, 12.5\nhere\n\n[button: [Go](https://example.org/go)] [button: No]',
    },
  },
  {
    name: 'a block and a mark of kinds that nobody knows yet keep their text',
    shape: 'NousResearch/hermes-agent#82531, unknown future containers',
    update: rich(
      {
        type: 'timeline',
        title: 'Plan',
        entries: [{ type: 'moment', when: 'today', blocks: [paragraph('dig')] }],
      },
      paragraph(['so ', { type: 'glow', text: 'bright', custom_emoji_id: '5' }]),
    ),
    read: {
      event: 'message',
      text: 'Plan\ntoday\ndig\nso bright',
      shown: 'Plan\n\ntoday\n\ndig\n\nso bright',
    },
  },
  {
    name: 'blocks as texts, missing, or null',
    shape: 'Bot API 10.1, RichText as a string; servers that leave members out',
    update: rich(
      'just words',
      null,
      { type: 'paragraph' },
      { type: 'paragraph', text: null },
      paragraph({ text: 'inner' }),
    ),
    read: { event: 'message', text: 'just words\ninner', shown: 'just words\n\ninner' },
  },
  {
    name: 'Markdown instead of blocks',
    shape: 'InputRichMessage.markdown, as some servers echo it',
    update: message({ rich_message: { markdown: '# Hi\nall' } }),
    read: { event: 'message', text: '# Hi\nall' },
  },
  {
    name: 'deeply nested marks',
    shape: 'aiogram/aiogram#1925, eight levels of rich text',
    update: rich(
      paragraph(
        ['spoiler', 'subscript', 'bold', 'italic', 'underline', 'marked', 'bold', 'spoiler'].reduce<unknown>(
          (text, type) => ({ type, text }),
          'deep',
        ),
      ),
    ),
    read: {
      event: 'message',
      text: 'deep',
      shown: '||**==_**<sub>||deep||</sub>**_==**||',
    },
  },
  {
    name: 'an edit to a rich message',
    shape: 'Bot API 10.1, edited_message with rich_message alone',
    update: edited({ rich_message: { blocks: [paragraph('buy oat milk')] } }),
    read: { event: 'edit', text: 'buy oat milk' },
  },
  {
    name: 'a rich message without anything in it',
    shape: 'Bot API 10.1, blocks of kinds that hold no words, or none',
    update: rich({ type: 'anchor', name: 'top' }),
    read: { event: 'message', unknown: ['rich_message'] },
  },
];
