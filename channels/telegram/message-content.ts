import { cleanText } from '#channel-kit/clean-text.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundMessage } from '#contracts/envelope.ts';
import { messageId } from '#contracts/ids.ts';
import type { Bot } from './ids.ts';
import { nameOf, originName } from './people.ts';
import { provenanceOf } from './provenance.ts';
import type { Entity, Message, QuotedMessage, TelegramFile } from './update-schema.ts';

/** A text this long may continue in the next message: clients split at 4096 characters, some earlier, at a word. */
const mayContinueFrom = 4000;

/** Fields that aren't the content of a message; the first other field gives a service message its name. */
const commonFields = new Set(
  'message_id message_thread_id is_topic_message from sender_chat sender_boost_count sender_business_bot sender_tag date chat edit_date author_signature reply_to_message external_reply quote forward_origin forward_date forward_from forward_from_chat forward_from_message_id forward_sender_name forward_signature is_automatic_forward via_bot has_protected_content is_from_offline link_preview_options reply_markup media_group_id effect_id direct_messages_topic business_connection_id receiver_user ephemeral_message_id'.split(
    ' ',
  ),
);

/** Says whether it is a service message, or content that Parley doesn't use: joins, pins, polls, new topics … */
export function isServiceMessage(message: Message): boolean {
  return textSource(message) === undefined && attachmentsOf(message).length === 0;
}

/** Returns the name of an unsupported message: the field of its content, or its kind of chat. */
export function nameOfContent(message: Message, body: unknown): string {
  if (message.chat.is_direct_messages) return 'direct_messages';
  if (message.message_id === 0) return 'ephemeral_message';
  const fields = typeof body === 'object' && body !== null ? Object.keys(body) : [];
  return fields.find((field) => !commonFields.has(field)) ?? 'message';
}

export function readContent(message: Message, bot: Bot): InboundMessage {
  const quote = quoteOf(message);
  const { forward_origin: origin, media_group_id: album } = message;
  return {
    kind: 'message',
    messageId: messageId(String(message.message_id)),
    text: textOf(message),
    provenance: provenanceOf(message),
    attachments: attachmentsOf(message),
    mentionsBot: mentions(message, bot),
    repliesToBot: answeredMessage(message)?.from?.id === bot.id,
    ...(quote === undefined ? {} : { quote }),
    ...(origin === undefined ? {} : { forwardedFrom: originName(origin) }),
    ...(album === undefined ? {} : { album }),
    ...((message.text?.length ?? 0) >= mayContinueFrom ? { mayContinue: true } : {}),
  };
}

/** Returns the text or caption as written; for a sticker or a place, a text that represents it. */
export function textOf(message: Message): string {
  return cleanText(textSource(message) ?? '');
}

function textSource({
  text,
  caption,
  sticker,
  venue,
  location,
}: Message | QuotedMessage): string | undefined {
  if (text !== undefined || caption !== undefined) return text ?? caption;
  if (sticker !== undefined) return sticker.emoji;
  if (venue !== undefined) return `📍 ${venue.title}, ${venue.address}`;
  if (location !== undefined) return `📍 ${location.latitude}, ${location.longitude}`;
  return undefined;
}

/** Telegram itself marks at most 100. */
const mostEntities = 200;

function entitiesOf({ entities, caption_entities: inCaption }: Message): readonly Entity[] {
  return (entities ?? inCaption ?? []).slice(0, mostEntities);
}

/** User names and commands have at most 32 characters each; a longer mark is neither. */
const longestMark = 80;

/** Says whether the bot is mentioned. Offsets are UTF-16 code units, as JavaScript counts. User names ignore case. */
function mentions(message: Message, bot: Bot): boolean {
  const text = message.text ?? message.caption ?? '';
  return entitiesOf(message).some((entity) => {
    const end = entity.offset + Math.min(entity.length, longestMark);
    const marked = text.slice(entity.offset, end).trim();
    if (entity.type === 'mention') return bot.username !== '' && isSameName(marked, `@${bot.username}`);
    if (entity.type === 'text_mention') return entity.user?.id === bot.id;
    return entity.type === 'bot_command' && addresses(marked, bot);
  });
}

function addresses(command: string, bot: Bot): boolean {
  const at = command.indexOf('@');
  return at > 0 && bot.username !== '' && isSameName(command.slice(at + 1), bot.username);
}

function isSameName(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** In a topic, every message "answers" the one that opened it, which a bot may have sent; that isn't a reply. */
function answeredMessage({ reply_to_message: answered }: Message): QuotedMessage | undefined {
  return answered?.forum_topic_created === undefined ? answered : undefined;
}

function quoteOf(message: Message): InboundMessage['quote'] | undefined {
  const answered = answeredMessage(message);
  const chosen = message.quote?.text;
  if (answered !== undefined) {
    const author = answered.sender_chat ?? answered.from;
    return {
      messageId: messageId(String(answered.message_id)),
      author: author === undefined ? '' : nameOf(author),
      text: cleanText(chosen ?? textSource(answered) ?? ''),
    };
  }
  const { external_reply: external } = message;
  if (external === undefined || chosen === undefined) return undefined;
  return {
    messageId: messageId(String(external.message_id ?? 0)),
    author: originName(external.origin),
    text: cleanText(chosen),
  };
}

function attachmentsOf(message: Message): readonly AttachmentRef[] {
  // An animation comes with a copy of itself as a document, for older clients.
  const document = message.animation === undefined ? message.document : undefined;
  const still = message.sticker?.is_animated || message.sticker?.is_video ? undefined : message.sticker;
  return [
    attachment('image', largest(message.photo), 'image/jpeg'),
    attachment('voice', message.voice, 'audio/ogg'),
    attachment('audio', message.audio),
    attachment('video', message.video),
    attachment('video', message.video_note, 'video/mp4'),
    attachment('video', message.animation),
    attachment('image', still, 'image/webp'),
    attachment('file', document),
  ].flatMap((one) => (one === undefined ? [] : [one]));
}

/** Telegram lists the sizes of a photo; the last one is the largest. */
function largest(sizes: readonly TelegramFile[] | undefined): TelegramFile | undefined {
  return sizes?.at(-1);
}

function attachment(
  kind: AttachmentRef['kind'],
  file: TelegramFile | undefined,
  usualType?: string,
): AttachmentRef | undefined {
  if (file === undefined) return undefined;
  const mimeType = file.mime_type ?? usualType;
  return {
    ref: file.file_id,
    kind: kind === 'file' && mimeType?.startsWith('image/') ? 'image' : kind,
    ...(file.file_name === undefined ? {} : { name: cleanText(file.file_name) }),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(file.file_size === undefined ? {} : { sizeBytes: file.file_size }),
  };
}
