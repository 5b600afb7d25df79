/** Messages of files, stickers and other content besides words and cards. */
import {
  aFile,
  type DiscordInput,
  direct,
  dm,
  type Fields,
  fileRef,
  id,
  posted,
  ref,
} from './discord-input.ts';

type Read = Omit<NonNullable<DiscordInput['read']>, 'event'>;

function input(name: string, shape: string, fields: Fields, read: Read): DiscordInput {
  return { name, shape, dispatch: posted(fields), read: { event: 'message', ...read } };
}

const api = 'discord-api-docs, Attachment Object';
const polls = 'discord-api-docs, Poll Object';
const tea = {
  question: { text: 'Tea or coffee?' },
  answers: [
    { answer_id: 1, poll_media: { text: 'Tea', emoji: { id: null, name: '🍵' } } },
    { answer_id: 2, poll_media: { text: 'Coffee' } },
  ],
  expiry: '2026-11-28T10:00:00+00:00',
  allow_multiselect: false,
  layout_type: 1,
};

export const files: readonly DiscordInput[] = [
  input(
    'a picture without words',
    api,
    { attachments: [aFile('sun.png')] },
    { media: [`image ${fileRef('sun.png')}`] },
  ),
  {
    name: 'a picture in a direct conversation',
    shape: api,
    dispatch: direct({ attachments: [aFile('sun.png')] }),
    read: { event: 'message', media: [`image ${fileRef('sun.png', id, dm)}`] },
  },
  input(
    'a picture with a text for those who cannot see it',
    'discord-api-docs, Attachment Object, description',
    { content: 'look', attachments: [aFile('sun.png', { description: 'The sun over a lake' })] },
    {
      text: 'look',
      described: ['[Description of “sun.png”] The sun over a lake'],
      media: [`image ${fileRef('sun.png')}`],
    },
  ),
  input(
    'a file whose name had to change',
    'discord-api-docs, Attachment Object, title',
    {
      attachments: [
        aFile('offre_mai.pdf', { title: 'offre – mai', content_type: 'application/pdf', width: null }),
      ],
    },
    { media: [`file ${fileRef('offre_mai.pdf')}`] },
  ),
  input(
    'a file without a type, size and measures',
    'discord-api-docs, Attachment Object, fields that are optional',
    {
      attachments: [
        {
          id: '1455000000000000001',
          filename: 'notes',
          url: 'https://cdn.discordapp.com/attachments/1/1/notes',
        },
      ],
    },
    { media: [`file ${ref('https://cdn.discordapp.com/attachments/1/1/notes', '1455000000000000001')}`] },
  ),
  input(
    'a file whose size is a text and whose other fields are null',
    api,
    {
      attachments: [
        aFile('a.png', {
          size: '2048',
          content_type: null,
          proxy_url: null,
          description: null,
          duration_secs: null,
        }),
      ],
    },
    { media: [`file ${fileRef('a.png')}`] },
  ),
  input(
    'a file without an address',
    api,
    { attachments: [aFile('a.png', { url: null })] },
    { described: ['[File without an address] a.png'] },
  ),
  input(
    'a voice message',
    'discord-api-docs, Message Flags, IS_VOICE_MESSAGE',
    {
      flags: 1 << 13,
      attachments: [
        aFile('voice-message.ogg', {
          ...{ content_type: 'audio/ogg', duration_secs: 3.6, waveform: 'AAAA', width: undefined },
        }),
      ],
    },
    { described: ['[Length of “voice-message.ogg”] 4 s'], media: [`voice ${fileRef('voice-message.ogg')}`] },
  ),
  input(
    'a clip of a game',
    'discord-api-docs, Attachment Object, IS_CLIP',
    {
      attachments: [
        aFile('clip.mp4', {
          ...{ content_type: 'video/mp4', flags: 1, application: { id: '5', name: 'Chess' } },
          ...{
            clip_created_at: '2026-11-27T09:00:00+00:00',
            clip_participants: [{ id: '1', username: 'x' }],
          },
        }),
      ],
    },
    { media: [`video ${fileRef('clip.mp4')}`] },
  ),
  input(
    'a list of files of which one cannot be read',
    api,
    { attachments: [null, 7, aFile('a.png')] },
    { media: [`image ${fileRef('a.png')}`] },
  ),
  input(
    'a sticker that is a picture',
    'discord-api-docs, Sticker Item Object',
    { sticker_items: [{ id: '1101', name: 'Wave', format_type: 1 }] },
    {
      described: ['[Sticker] Wave'],
      media: [`image ${ref('https://cdn.discordapp.com/stickers/1101.png')}`],
    },
  ),
  input(
    'a sticker that is a GIF',
    'discord-api-docs, Sticker Format Types',
    { sticker_items: [{ id: '1101', name: 'Wave', format_type: 4 }] },
    {
      described: ['[Sticker] Wave'],
      media: [`image ${ref('https://media.discordapp.net/stickers/1101.gif')}`],
    },
  ),
  input(
    'a sticker that is a drawing in motion (Lottie)',
    'discord-api-docs, Sticker Format Types',
    { sticker_items: [{ id: '1101', name: 'Wave', format_type: 3 }] },
    { described: ['[Sticker] Wave'] },
  ),
  input(
    'a sticker in the older field',
    'discord-api-docs, Message Object, stickers (deprecated)',
    { stickers: [{ id: '1101', name: 'Wave', description: 'hi', tags: 'hi', format_type: 2, pack_id: '5' }] },
    {
      described: ['[Sticker] Wave'],
      media: [`image ${ref('https://cdn.discordapp.com/stickers/1101.png')}`],
    },
  ),
  input(
    'a poll',
    polls,
    { poll: tea },
    {
      described: ['[Poll] Tea or coffee?', '1. 🍵 Tea', '2. Coffee', 'It ends 2026-11-28T10:00:00+00:00.'],
    },
  ),
  input(
    'a poll that has ended, with its votes',
    'discord-api-docs, Poll Results Object',
    {
      poll: {
        ...{ ...tea, allow_multiselect: true, expiry: null },
        results: { is_finalized: true, answer_counts: [{ id: 2, count: 1, me_voted: false }] },
      },
    },
    {
      described: [
        ...['[Poll] Tea or coffee?', '1. 🍵 Tea (0 votes)', '2. Coffee (1 vote)'],
        'Several answers are allowed. It has ended.',
      ],
    },
  ),
  input(
    'a poll of pictures, without words',
    'discord-webhooks-guide, poll.md',
    { poll: { question: { text: null }, answers: [{ poll_media: { emoji: { id: '1365', name: 'cat' } } }] } },
    { described: ['[Poll]', '1. cat'] },
  ),
  input(
    'the outcome of a poll',
    'discord-api-docs, Poll Result embed',
    {
      type: 46,
      message_reference: { type: 0, channel_id: '1', message_id: '5' },
      embeds: [
        {
          type: 'poll_result',
          content_scan_version: 0,
          fields: [
            ...[{ name: 'poll_question_text', value: 'Tea or coffee?', inline: false }],
            ...[{ name: 'victor_answer_votes', value: '2', inline: false }],
            ...[
              { name: 'total_votes', value: '3', inline: false },
              { name: 'victor_answer_id', value: '1' },
            ],
            ...[
              { name: 'victor_answer_text', value: 'Tea' },
              { name: 'victor_answer_emoji_name', value: '🍵' },
            ],
          ],
        },
      ],
    },
    {
      described: ['[Poll ended] Tea or coffee?', '🍵 Tea: 2 of 3 votes'],
      origin: 'automated',
      startsNoRun: true,
    },
  ),
  input(
    'the outcome of a poll in which nobody voted',
    'discord-api-docs, Poll Result embed',
    {
      type: 46,
      embeds: [
        {
          type: 'poll_result',
          fields: [
            { name: 'poll_question_text', value: 'Now?' },
            { name: 'total_votes', value: '0' },
          ],
        },
      ],
    },
    { described: ['[Poll ended] Now?', 'No answer won (0 votes)'], origin: 'automated', startsNoRun: true },
  ),
  input(
    'an invitation to play along',
    'discord-api-docs, Message Activity Object',
    {
      activity: { type: 1, party_id: 'p' },
      application: { id: '5', name: 'Chess', icon: null, description: '', cover_image: 'c' },
    },
    { described: ['[Invitation to join] (Chess)'], origin: 'automated' },
  ),
  input(
    'a sound of the soundboard',
    'discord-userdoccers, Message Object, soundboard_sounds',
    { soundboard_sounds: [{ sound_id: '5', name: 'quack', volume: 1, emoji_name: '🦆' }] },
    { described: ['[Sound] quack'] },
  ),
  input(
    'the colors of a theme',
    'discord-api-docs, Shared Client Theme',
    { shared_client_theme: { colors: ['5865F2'], gradient_angle: 0, base_mix: 58, base_theme: 1 } },
    { described: ['[Shared the colors of a theme]'] },
  ),
];
