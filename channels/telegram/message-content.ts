/** The content of a message, of the one it quotes, and of an edit: words, other content, files. Pure. */
import { cleanText } from '#channel-kit/clean-text.ts';
import { unsupported } from '#channel-kit/event-mapping.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type {
  InboundEvent,
  InboundMessage,
  InboundQuote,
  InboundWords,
  Provenance,
} from '#contracts/envelope.ts';
import { messageId } from '#contracts/ids.ts';
import { type Content, type Media, originSchema, type PollMedia } from './content-schema.ts';
import { linesOf, taskName } from './describe.ts';
import { renderEntities } from './entity-text.ts';
import type { Entity, TelegramFile } from './fields.ts';
import type { Bot } from './ids.ts';
import { externalReplyFields, type Fate, fateIn, fateOf, refusalOf, smallKinds } from './inventory.ts';
import { callsBot, type Mention, mentionsIn, namesBot } from './mentions.ts';
import { nameOf, originName } from './people.ts';
import { type RichContent, readRichMessage } from './rich-message.ts';
import type { ExternalReply, Message, QuotedMessage } from './update-schema.ts';

/** A text this long may continue in the next message: clients split at 4096 characters, some earlier, at a word. */
const mayContinueFrom = 4000;

/** The content of a message, or of a quoted one. */
export type ReadContent = InboundWords & { readonly attachments: readonly AttachmentRef[] };

/** Says whether there is anything to read. */
function hasContent({ text, described = [], attachments }: ReadContent): boolean {
  return text.trim() !== '' || described.length > 0 || attachments.length > 0;
}

/** `body` is the message as it arrived, from which fields are named that can't be read. */
function readMessageContent(message: Message, body: unknown, bot: Bot): InboundMessage {
  const { content, mentions, beginsInQuotation } = readWords(message, body);
  const entities = message.entities ?? message.caption_entities ?? [];
  const written = message.text ?? message.caption ?? '';
  const { forward_origin: origin, media_group_id: album } = message;
  const quote = quoteOf(message, body);
  return {
    ...content,
    kind: 'message',
    messageId: messageId(String(message.message_id)),
    provenance: provenanceOf(message, { beginsInQuotation }),
    mentionsBot: mentions.some((one) => callsBot(one, bot)) || namesBot(written, entities, bot),
    repliesToBot: answeredMessage(message)?.from?.id === bot.id,
    ...(quote && { quote }),
    ...(origin != null && { forwardedFrom: originName(originSchema.catch({ type: '' }).parse(origin)) }),
    ...(album !== undefined && { album }),
    ...(isNote(body) && { startsNoRun: true }),
    ...((message.text?.length ?? 0) >= mayContinueFrom ? { mayContinue: true } : {}),
  };
}

type Words = {
  readonly content: ReadContent;
  readonly mentions: readonly Mention[];
  readonly beginsInQuotation: boolean;
};

/** Reads words, other content and files of a message, or of one that it quotes. */
function readWords(message: Content, body: unknown, fate = fateOf): Words {
  const rich = readRichMessage(message.rich_message);
  const written = message.text ?? message.caption;
  const marks: readonly Entity[] = message.entities ?? message.caption_entities ?? [];
  const text = cleanText(written ?? rich?.text ?? '');
  const shown = cleanText(rich?.shown ?? renderEntities(text, marks));
  const described = [...stickerLine(message), ...linesOf(message)];
  const unknownFields = unreadFieldsOf(body, fate);
  return {
    content: {
      text,
      ...(shown !== text && { shown }),
      ...(described.length > 0 && { described }),
      attachments: filesOf(message, rich),
      ...(unknownFields.length > 0 && { unknownFields }),
    },
    mentions: [...mentionsIn(text, marks), ...(rich?.mentions ?? [])],
    beginsInQuotation: rich?.beginsInQuotation ?? beginsInQuotation(text, marks),
  };
}

const quotations = new Set(['blockquote', 'expandable_blockquote']);

function beginsInQuotation(text: string, marks: readonly Entity[]): boolean {
  const first = text.search(/\S/);
  return marks.some(
    ({ type, offset, length }) => quotations.has(type) && offset <= first && first < offset + length,
  );
}

/** Names the fields that nobody knows, and those with content that can't be read. */
function unreadFieldsOf(body: unknown, fateFor: typeof fateOf): readonly string[] {
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([field, value]) => {
    const fate = fateFor(field);
    if (value === null || value === undefined || value === '') return [];
    if (fate === undefined) return [field];
    return isContent(fate) && typeof value !== 'string' ? [field] : [];
  });
}

function isContent(fate: Fate | undefined): boolean {
  return fate === 'text' || fate === 'line' || fate === 'note' || fate === 'media';
}

/** Says whether the message only reports something that happened. */
function isNote(body: unknown): boolean {
  const fates = Object.entries(body ?? {}).flatMap(([field, value]) =>
    value == null ? [] : [fateOf(field)],
  );
  return fates.includes('note') && fates.every((fate) => fate === 'note' || !isContent(fate));
}

function stickerLine({ sticker }: Content): readonly string[] {
  if (sticker === undefined) return [];
  const { emoji = '', set_name: set } = sticker;
  return [
    `[Sticker: ${[emoji, set && `from “${cleanText(set)}”`].filter(Boolean).join(' ') || 'without emoji'}]`,
  ];
}

/** In a topic, every message "answers" the one that opened it, which a bot may have sent; that isn't a reply. */
function answeredMessage({ reply_to_message: answered }: Message): QuotedMessage | undefined {
  return answered?.forum_topic_created ? undefined : answered;
}

function quoteOf(message: Message, body: unknown): InboundQuote | undefined {
  const answered = answeredMessage(message);
  if (answered !== undefined) return quotedMessage(message, answered, memberOf(body, 'reply_to_message'));
  const { external_reply: external, reply_to_story: story, quote } = message;
  if (external !== undefined) return quotedElsewhere(message, external, memberOf(body, 'external_reply'));
  if (story !== undefined)
    return { ...(story.chat && { author: nameOf(story.chat) }), text: '', described: ['[Story]'] };
  return quote?.text === undefined ? undefined : { text: '', ...chosenWords(message) };
}

function quotedMessage(message: Message, answered: QuotedMessage, body: unknown): InboundQuote {
  const author = answered.sender_chat ?? answered.from;
  const { content } = readWords({ ...answered, reply_markup: undefined }, body);
  return {
    messageId: messageId(String(answered.message_id)),
    author: author === undefined ? '' : nameOf(author),
    ...withoutEmpty(content),
    ...chosenWords(message),
    ...withLines(content.described, chosenPart(message, answered)),
  };
}

/** The text of a message in another chat is only known as far as the sender has chosen it. */
function quotedElsewhere(message: Message, external: ExternalReply, body: unknown): InboundQuote {
  const { content } = readWords(external, body, (field) => fateIn(externalReplyFields, field));
  return {
    ...(external.message_id !== undefined && { messageId: messageId(String(external.message_id)) }),
    author: external.origin === undefined ? '' : originName(external.origin),
    ...withoutEmpty(content),
    ...chosenWords(message),
    ...(hasContent(content) || message.quote?.text ? {} : { described: ['[A message in another chat]'] }),
  };
}

function withoutEmpty({ attachments, ...words }: ReadContent): Omit<InboundQuote, 'messageId' | 'author'> {
  return { ...words, ...(attachments.length > 0 && { attachments }) };
}

/** Returns the passage that the sender has chosen of the quoted message. */
function chosenWords({ quote }: Message): Pick<InboundWords, 'text' | 'shown'> | undefined {
  if (quote?.text === undefined) return undefined;
  const text = cleanText(quote.text);
  return { text, shown: cleanText(renderEntities(text, quote.entities)) };
}

/** Names the task or the option that is answered, where a reply is to one of a list. */
function chosenPart(message: Message, { checklist, poll }: QuotedMessage): string | undefined {
  const { reply_to_checklist_task_id: task, reply_to_poll_option_id: option } = message;
  if (task !== undefined) return `[About the task: ${taskName(checklist, task)}]`;
  if (option === undefined) return undefined;
  const text = poll?.options?.find(({ persistent_id: id }) => id === option)?.text;
  return `[About the option: ${text ?? 'unknown'}]`;
}

function withLines(lines: readonly string[] = [], more: string | undefined): Pick<InboundWords, 'described'> {
  return more === undefined ? {} : { described: [...lines, more] };
}

function memberOf(body: unknown, field: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[field] : undefined;
}

function filesOf(message: Content, rich: RichContent | undefined): readonly AttachmentRef[] {
  const { poll, paid_media: paid } = message;
  const ofPoll = [poll?.media, ...(poll?.options ?? []).map(({ media }) => media), poll?.explanation_media];
  const all: readonly (Media | PollMedia)[] = [
    message,
    ...ofPoll,
    ...(paid?.paid_media ?? []),
    ...(rich?.media ?? []),
  ];
  return all.flatMap((media) => (media === undefined ? [] : attachmentsOf(media)));
}

function attachmentsOf(media: Media): readonly AttachmentRef[] {
  // An animation comes with a copy of itself as a document, and a live photo as a photo, for older clients.
  const document = media.animation === undefined ? media.document : undefined;
  const photo = largest(media.photo) ?? largest(media.live_photo?.photo);
  const moving = photo === undefined ? media.live_photo : undefined;
  const { sticker } = media;
  // No model can look at a moving one; its preview is a picture.
  const still = sticker?.is_animated || sticker?.is_video ? sticker.thumbnail : sticker;
  return [
    attachment('image', photo, 'image/jpeg'),
    attachment('video', moving, 'video/mp4'),
    attachment('voice', media.voice, 'audio/ogg'),
    attachment('audio', media.audio && { ...media.audio, file_name: audioName(media.audio) }),
    attachment('video', media.video),
    attachment('video', media.video_note, 'video/mp4'),
    attachment('video', media.animation),
    attachment('image', still, 'image/webp'),
    attachment('file', document),
  ].flatMap((one) => (one === undefined ? [] : [one]));
}

/** Telegram lists the sizes of a photo; the last one is the largest. */
function largest(sizes: readonly TelegramFile[] | undefined): TelegramFile | undefined {
  return sizes?.at(-1);
}

function audioName({ file_name: file, performer, title }: NonNullable<Media['audio']>): string | undefined {
  return file ?? ([performer, title].filter(Boolean).join(' – ') || undefined);
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
    ...(file.file_unique_id !== undefined && { fileId: file.file_unique_id }),
    kind: kind === 'file' && mimeType?.startsWith('image/') ? 'image' : kind,
    ...(file.file_name === undefined ? {} : { name: cleanText(file.file_name) }),
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(file.file_size === undefined ? {} : { sizeBytes: file.file_size }),
  };
}

/** Any of these shows that the message was forwarded; all but the first are from older servers. */
const forwardMarks = [
  'forward_origin',
  'forward_date',
  'forward_from',
  'forward_from_chat',
  'forward_from_message_id',
  'forward_sender_name',
  'forward_signature',
] as const;

const automationMarks = [
  'sender_business_bot',
  'guest_bot_caller_user',
  'guest_bot_caller_chat',
  'is_from_offline',
] as const;

/**
 * Says whose words these are. Telegram leaves the sender's own name on forwarded text, on the caption of a forwarded
 * file, and on what an inline bot offered. A message written as a channel may be from anyone who runs it; one written
 * as the group itself was typed by one of its administrators.
 */
function provenanceOf(
  message: Message,
  { beginsInQuotation }: { readonly beginsInQuotation: boolean },
): Provenance {
  const { chat, sender_chat: speaker } = message;
  if (message.is_automatic_forward || chat.type === 'channel') return 'channel-post';
  if (forwardMarks.some((mark) => message[mark])) return 'forwarded';
  if (message.via_bot) return 'inline-bot';
  if (speaker !== undefined && speaker.id !== chat.id) return 'channel-post';
  if (automationMarks.some((mark) => message[mark])) return 'automated';
  if (message.story !== undefined) return 'story';
  return beginsInQuotation ? 'quoted' : 'typed';
}

// The event of a new message and of an edit: its content, or why it isn't read. Pure.

/** Reads the message. Without any content, it is refused by the name of its first field that isn't read. */
export function readContentEvent(message: Message, body: unknown, bot: Bot): InboundEvent {
  const elsewhere = unansweredPlace(message);
  if (elsewhere !== undefined) return refused(elsewhere, message);
  const content = readMessageContent(message, body, bot);
  if (hasContent(content)) return content;
  const service = presentFields(body).find((field) => fateOf(field)?.startsWith('refused: '));
  if (service !== undefined) return refused(`${service}: ${refusalOf(fateOf(service)) ?? ''}`, message);
  return content.unknownFields === undefined ? refused('message: it has no content', message) : content;
}

/** Reads the new version of a message. */
export function readEditEvent(message: Message, body: unknown, bot: Bot): InboundEvent {
  const elsewhere = unansweredPlace(message);
  if (elsewhere !== undefined) return refused(elsewhere, message);
  // A moving location is edited every few seconds, for hours; its last position is an edit like any other.
  if (message.location?.live_period != null)
    return refused('live_location: only the last position of a moving location is read', message);
  const { messageId: id, provenance, ...content } = readMessageContent(message, body, bot);
  const { text, shown, described, attachments, unknownFields } = content;
  const edit = { kind: 'edit', messageId: id, provenance } as const;
  const unread = unknownFields && { unknownFields };
  // Words that can't be read must not look as if they were taken away, nor must files.
  if ((shown ?? text) === '' && hasField(body, 'text')) return { ...edit, text, ...unread };
  return {
    ...edit,
    text,
    ...(shown !== undefined && { shown }),
    ...(described && { described }),
    ...unread,
    ...((attachments.length > 0 || !hasField(body, 'media')) && { attachments }),
  };
}

/** Returns what tells two versions of a message apart. */
export function versionOf(event: InboundEvent): string {
  if (event.kind !== 'edit') return event.kind;
  const { text, shown = text, described = [], attachments = [] } = event;
  return [shown, ...described, ...attachments.map(({ fileId, ref }) => fileId ?? ref)].join('\n');
}

/** Returns the names of the fields that aren't null or empty. */
export function presentFields(body: unknown): readonly string[] {
  if (typeof body !== 'object' || body === null) return [];
  return Object.entries(body).flatMap(([field, value]) => (value == null || value === '' ? [] : [field]));
}

/** Says whether the message has any field of this fate, even an unreadable one. */
function hasField(body: unknown, fate: 'text' | 'media'): boolean {
  return presentFields(body).some((field) => fateOf(field) === fate);
}

function refused(name: string, message: { readonly message_id: number }): InboundEvent {
  return unsupported(
    name,
    message.message_id === 0 ? {} : { messageId: messageId(String(message.message_id)) },
  );
}

/** Says why Parley can't answer there: in a channel or its direct messages, or a message shown to one person. */
function unansweredPlace({ chat, message_id: id }: Message): string | undefined {
  if (chat.is_direct_messages) return 'direct_messages: direct messages of channels aren’t answered';
  if (id === 0) return 'ephemeral_message: messages that only one person sees aren’t answered';
  return chat.type === 'channel' ? `channel: ${refusalOf(smallKinds.chat.channel)}` : undefined;
}
