import { aDirectMessage, aMessage, bob, bot, general, guildId } from '../../channels/discord/payloads.ts';
import type { ReadInput } from '../read-input.ts';

/** An event in a shape that Discord sends, with our own words, and how Parley reads it; absent: not at all. */
export type DiscordInput = {
  readonly name: string;
  /** Where the shape was seen. */
  readonly shape: string;
  readonly dispatch: { readonly t: string; readonly d: Fields };
  readonly read?: ReadInput;
};

export type Fields = Readonly<Record<string, unknown>>;

/** The id of the message that an input is about. */
export const id = '1460000000000000001';
/** The id of the message that it quotes or forwards. */
export const other = '1459000000000000002';
export const editedAt = '2026-11-27T10:05:00.123456+00:00';
export const botUser = { id: bot.id, username: 'parley', bot: true };

/** A message in a channel of a server, without any content but that in the fields. */
export const posted = (fields: Fields) => ({
  t: 'MESSAGE_CREATE',
  d: aMessage({ id, content: '', components: [], nonce: '1460000000000000000', ...fields }),
});
/** A message in a direct conversation. */
export const direct = (fields: Fields) => ({
  t: 'MESSAGE_CREATE',
  d: aDirectMessage({ id, content: '', components: [], channel_type: 1, ...fields }),
});
/** A new version of a message, complete unless the fields say otherwise. */
export const changed = (fields: Fields) => ({
  t: 'MESSAGE_UPDATE',
  d: aMessage({ id, content: '', edited_timestamp: editedAt, ...fields }),
});
/** An update that says only what has changed. */
export const changedOnly = (fields: Fields) => ({
  t: 'MESSAGE_UPDATE',
  d: { id, channel_id: general, guild_id: guildId, ...fields },
});
/** Another message, as `referenced_message` shows it: without a server and a member. */
export function original(fields: Fields): Fields {
  const {
    guild_id: _,
    member: __,
    ...message
  } = aMessage({ id: other, author: bob, content: '', ...fields });
  return message;
}
export const reference: Fields = { type: 0, channel_id: general, message_id: other, guild_id: guildId };
/** A reply to that message. */
export const reply = (quoted: Fields | null, fields: Fields = {}) =>
  posted({
    type: 19,
    content: 'what is this?',
    message_reference: reference,
    referenced_message: quoted,
    ...fields,
  });
/** A forward of a message from a channel that the bot doesn't see. */
export const forward = (snapshot: Fields, fields: Fields = {}) =>
  posted({
    flags: 1 << 14,
    message_reference: { type: 1, channel_id: '1299000000000000009', message_id: other },
    message_snapshots: [
      {
        message: {
          type: 0,
          content: '',
          embeds: [],
          attachments: [],
          timestamp: '2026-11-27T10:00:00Z',
          edited_timestamp: null,
          flags: 0,
          mentions: [],
          mention_roles: [],
          components: [],
          ...snapshot,
        },
      },
    ],
    ...fields,
  });

export const cdn = 'https://cdn.discordapp.com/attachments/1200000000000000002';
export const proxied = 'https://images-ext-1.discordapp.net/external/k3/https/example.org';

/** An uploaded file, with every field that Discord sends for a picture. */
export const aFile = (filename: string, fields: Fields = {}): Fields => ({
  id: '1455000000000000001',
  filename,
  size: 2048,
  url: `${cdn}/1/${filename}?ex=1&is=2&hm=3`,
  proxy_url: `https://media.discordapp.net/attachments/1200000000000000002/1/${filename}`,
  content_type: 'image/png',
  content_scan_version: 0,
  width: 640,
  height: 480,
  placeholder: 'xyz',
  placeholder_version: 1,
  ...fields,
});

/** The ref of a file of the message, or of the quoted one. */
export const ref = (url: string, fileId = '0', of = id, channel = general) =>
  `${channel}/${of}/${fileId} ${url}`;
/** The ref of a file made by `aFile`. */
export const fileRef = (filename: string, of = id, channel = general) =>
  ref(`${cdn}/1/${filename}?ex=1&is=2&hm=3`, '1455000000000000001', of, channel);

export { ada, bob, bot, dm, general, guildId, thread } from '../../channels/discord/payloads.ts';
