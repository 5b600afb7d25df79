/** Forwards, replies and the beginnings of threads: what somebody else said, and its pictures. */
import {
  aFile,
  botUser,
  type DiscordInput,
  type Fields,
  fileRef,
  forward,
  general,
  original,
  other,
  posted,
  ref,
  reference,
  reply,
  thread,
} from './discord-input.ts';

type Read = Omit<NonNullable<DiscordInput['read']>, 'event'>;

const card = {
  type: 'rich',
  title: 'Disk alert',
  description: 'Disk /data is 97 % full',
  fields: [{ name: 'host', value: 'db-3' }],
};
const cardLines = ['[Embed] Disk alert', 'Disk /data is 97 % full', 'host: db-3'];
const text = 'what is this?';
const quoted = { author: 'bob', of: other };

function forwards(name: string, shape: string, snapshot: Fields, read: Read): DiscordInput {
  return {
    name,
    shape,
    dispatch: forward(snapshot),
    read: { event: 'message', origin: 'forwarded', ...read },
  };
}

function replies(name: string, shape: string, fields: Fields, quote: Read['quote']): DiscordInput {
  return {
    name,
    shape,
    dispatch: reply(original(fields)),
    read: { event: 'message', text, quote: { ...quoted, ...quote } },
  };
}

const forwarding: readonly DiscordInput[] = [
  forwards('a forward of a text', 'discord.js #10872', { content: 'far away' }, { text: 'far away' }),
  forwards(
    'a forward of a card',
    'input 06; hybridclaw pull request 1521',
    { embeds: [card] },
    { described: cardLines },
  ),
  forwards(
    'a forward of a picture',
    'hermes-agent pull request 25486',
    { attachments: [aFile('sun.png')] },
    { media: [`image ${fileRef('sun.png')}`] },
  ),
  forwards(
    'a forward of a voice message',
    'vercel/chat pull request 825',
    {
      flags: 1 << 13,
      attachments: [
        aFile('voice-message.ogg', { content_type: 'audio/ogg', duration_secs: 2, waveform: 'AA' }),
      ],
    },
    { described: ['[Length of “voice-message.ogg”] 2 s'], media: [`voice ${fileRef('voice-message.ogg')}`] },
  ),
  forwards(
    'a forward of a sticker',
    'discord-api-docs, Message Snapshot Structure',
    { sticker_items: [{ id: '1101', name: 'Wave', format_type: 3 }] },
    { described: ['[Sticker] Wave'] },
  ),
  forwards(
    'a forward of components',
    'discord-api-docs, Message Snapshot Structure',
    { flags: 1 << 15, components: [{ type: 10, content: 'all is well' }] },
    { described: ['all is well'] },
  ),
  forwards(
    'a forward that names people',
    'discord-api-docs, Message Snapshot Structure',
    {
      content: '<@1400000000000000009> knows',
      mentions: [{ id: '1400000000000000009', username: 'eve', global_name: 'Eve' }],
    },
    { text: '@Eve knows' },
  ),
  forwards(
    'a forward of words to the bot',
    'discordjs/discord.js#10872; nanocoai/nanoclaw#2922',
    { content: `<@${botUser.id}> stop`, mentions: [botUser] },
    { text: '@parley stop' },
  ),
  forwards(
    'a forward of a forward',
    'discord-api-docs, Message Snapshot Structure',
    { flags: 1 << 14, message_snapshots: [{ message: { content: 'farther away', embeds: [card] } }] },
    { text: 'farther away', described: cardLines },
  ),
  forwards(
    'a forward of a field that nobody knows',
    'discord-api-docs, Message Snapshot Structure',
    { hologram: { size: 3 } },
    { unknown: ['message_snapshots.hologram'] },
  ),
  {
    name: 'a forward with words of the sender’s own',
    shape: 'discord-api-docs, Message Reference Types',
    dispatch: forward({ content: 'far away' }, { content: 'see this' }),
    read: { event: 'message', text: 'see this\nfar away', origin: 'forwarded' },
  },
  {
    name: 'a forward from a channel that the bot sees',
    shape: 'discord-api-docs, Message Reference Types',
    dispatch: forward(
      { content: 'near' },
      { message_reference: { type: 1, channel_id: general, message_id: other } },
    ),
    read: { event: 'message', text: 'near', origin: 'forwarded' },
  },
  {
    name: 'a forward whose message is null',
    shape: 'serenity pull request 3092',
    dispatch: forward({}, { message_snapshots: [{ message: null }] }),
    read: { event: 'unsupported', refused: 'message-type-0: ' },
  },
  {
    name: 'a forward without its message',
    shape: 'discord.py #10204',
    dispatch: forward({}, { message_snapshots: undefined }),
    read: { event: 'unsupported', refused: 'message-type-0: ' },
  },
];

const album = Array.from({ length: 10 }, (_, index) =>
  aFile(`${index}.png`, { id: `145500000000000000${index}` }),
);
const replying: readonly DiscordInput[] = [
  replies('a reply to a text', 'discord-api-docs, Replies', { content: 'No.' }, { text: 'No.' }),
  replies('a reply to a card', 'input 07; paseo hub #64', { embeds: [card] }, { described: cardLines }),
  replies(
    'a reply to a picture',
    'discord-api-docs, Replies',
    { attachments: [aFile('sun.png')] },
    { media: [`image ${fileRef('sun.png', other)}`] },
  ),
  replies(
    'a reply to ten pictures',
    'discord-api-docs, Replies',
    { attachments: album },
    { media: album.map(({ id: file, url }) => `image ${ref(String(url), String(file), other)}`) },
  ),
  replies(
    'a reply to a voice message',
    'discord-api-docs, Message Flags, IS_VOICE_MESSAGE',
    { flags: 1 << 13, attachments: [aFile('voice-message.ogg', { content_type: 'audio/ogg' })] },
    { media: [`voice ${fileRef('voice-message.ogg', other)}`] },
  ),
  replies(
    'a reply to a sticker',
    'discord-api-docs, Sticker Item Object',
    { sticker_items: [{ id: '1101', name: 'Wave', format_type: 3 }] },
    { described: ['[Sticker] Wave'] },
  ),
  replies(
    'a reply to a poll',
    'discord-api-docs, Poll Object',
    { poll: { question: { text: 'Now?' }, answers: [{ answer_id: 1, poll_media: { text: 'Yes' } }] } },
    { described: ['[Poll] Now?', '1. Yes'] },
  ),
  replies(
    'a reply to a container',
    'discord-api-docs, Component Reference',
    { flags: 1 << 15, components: [{ type: 17, components: [{ type: 10, content: 'all is well' }] }] },
    { described: ['all is well'] },
  ),
  replies(
    'a reply to a forward',
    'hybridclaw pull request 1521',
    { flags: 1 << 14, message_snapshots: [{ message: { content: 'far away', embeds: [card] } }] },
    { text: 'far away', described: cardLines },
  ),
  replies(
    'a reply to a field that nobody knows',
    'discord-api-docs, Replies',
    { hologram: { size: 3 } },
    { unknown: ['hologram'] },
  ),
  replies('a reply to a note of Discord', 'discord-api-docs, Message Types', { type: 7 }, {}),
  {
    name: 'a reply to the bot, which pings it',
    shape: 'discord-api-docs, Replies',
    dispatch: reply(original({ author: botUser, content: 'Yes.' }), { mentions: [botUser] }),
    read: { event: 'message', text, quote: { text: 'Yes.', author: 'parley', of: other } },
  },
  {
    name: 'a reply to a message that was deleted',
    shape: 'discord-api-docs, Message Object, referenced_message null',
    dispatch: reply(null),
    read: { event: 'message', text },
  },
  {
    name: 'a reply that Discord did not look up',
    shape: 'discord-api-docs, Message Object, referenced_message absent',
    dispatch: reply(null, { referenced_message: undefined }),
    read: { event: 'message', text },
  },
  {
    name: 'a reply to a message without an author and an id',
    shape: 'Discord.Net pull request 1858',
    dispatch: reply({ content: 'No.', author: null, id: null }),
    read: { event: 'message', text, quote: { text: 'No.', of: other } },
  },
  {
    name: 'an answer to a menu command on a message',
    shape: 'discord-api-docs, Message Types, context menu command',
    dispatch: posted({
      ...{ type: 23, content: 'Translated: no.', application_id: '5', webhook_id: '5' },
      ...{ message_reference: reference, referenced_message: original({ content: 'Non.' }) },
    }),
    read: {
      event: 'message',
      text: 'Translated: no.',
      origin: 'automated',
      quote: { ...quoted, text: 'Non.' },
    },
  },
];

const starts = (quote: Fields | null | undefined) =>
  posted({
    ...{ type: 21, channel_id: thread, flags: 0, position: 0 },
    ...{ message_reference: reference, referenced_message: quote },
  });
const started = {
  event: 'message',
  described: ['[This thread hangs on the quoted message.]'],
  origin: 'quoted',
  startsNoRun: true,
} as const;

const threads: readonly DiscordInput[] = [
  {
    name: 'the beginning of a thread on a text',
    shape: 'input 08; typeclaw pull request 663',
    dispatch: starts(original({ content: 'The login page is down' })),
    read: { ...started, quote: { ...quoted, text: 'The login page is down' } },
  },
  {
    name: 'the beginning of a thread on a card',
    shape: 'paseo hub #64',
    dispatch: starts(original({ embeds: [card] })),
    read: { ...started, quote: { ...quoted, described: cardLines } },
  },
  {
    name: 'the beginning of a thread on a picture',
    shape: 'vercel/chat pull request 185',
    dispatch: starts(original({ attachments: [aFile('sun.png')] })),
    read: { ...started, quote: { ...quoted, media: [`image ${fileRef('sun.png', other)}`] } },
  },
  {
    name: 'the beginning of a thread on a text inside components',
    shape: 'openclaw/openclaw#138948, Components V2 in a thread starter',
    dispatch: starts(
      original({
        flags: 1 << 15,
        components: [{ type: 17, components: [{ type: 10, content: 'Deploy **failed**' }] }],
      }),
    ),
    read: { ...started, quote: { ...quoted, described: ['Deploy **failed**'] } },
  },
  {
    name: 'the beginning of a thread on buttons',
    shape: 'discord-api-docs #5562',
    dispatch: starts(
      original({ components: [{ type: 1, components: [{ type: 2, style: 1, label: 'Go' }] }] }),
    ),
    read: { ...started, quote: { ...quoted, described: ['[Go]'] } },
  },
  {
    name: 'the beginning of a thread whose first message was deleted',
    shape: 'vercel/chat pull request 185',
    dispatch: starts(null),
    read: { event: 'unsupported', refused: 'message-type-21: the first message of the thread is gone' },
  },
  {
    name: 'the note about a new thread, in the channel above it',
    shape: 'typeclaw pull request 516',
    dispatch: posted({
      type: 18,
      content: 'login page',
      message_reference: { channel_id: thread, guild_id: '9' },
    }),
    read: { event: 'unsupported', refused: 'message-type-18: Discord’s note: somebody started a thread' },
  },
  {
    name: 'a text in a thread',
    shape: 'discord-api-docs, Threads',
    dispatch: posted({ channel_id: thread, content: 'any news?', position: 3, channel_type: 11 }),
    read: { event: 'message', text: 'any news?' },
  },
];

export const quotes: readonly DiscordInput[] = [...forwarding, ...replying, ...threads];
