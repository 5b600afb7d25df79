import { cleanText } from '#channel-kit/clean-text.ts';
import { fileKind } from '#channel-kit/event-mapping.ts';
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundMessage, InboundQuote, Provenance } from '#contracts/envelope.ts';
import type { Content, Mention, SharedContact, SignalAttachment } from './envelope-schema.ts';
import { type Bot, type MessageRef, messageIdOf, readAci } from './ids.ts';

/** The names that people see; only for display. */
export type Names = {
  readonly bot: Bot;
  /** Returns a person's name, if known. */
  nameOf(aci: string): string | undefined;
};

export function readMessage(content: Content, ref: MessageRef, names: Names): InboundMessage {
  const quote = quoteOf(content, names);
  const described = describedIn(content);
  const { unknownFields } = content;
  return {
    kind: 'message',
    messageId: messageIdOf(ref),
    text: textOf(content, names),
    ...(described.length > 0 && { described }),
    ...(unknownFields.length > 0 && { unknownFields }),
    provenance: provenanceOf(content),
    attachments: attachmentsOf(content),
    mentionsBot: mentionsBot(content.mentions ?? [], names.bot),
    ...addresseeOf(content.quote, names.bot),
    ...(quote === undefined ? {} : { quote }),
  };
}

/** A quote says whether it is of the bot's message; if it names no author it may be, and core finds out. */
function addresseeOf(
  quote: Content['quote'],
  { aci }: Bot,
): Pick<InboundMessage, 'repliesToBot' | 'repliesTo'> {
  if (quote == null) return { repliesToBot: false };
  if (quote.authorUuid != null) return { repliesToBot: readAci(quote.authorUuid) === aci };
  if (quote.id == null) return { repliesToBot: false };
  return { repliesToBot: false, repliesTo: messageIdOf({ author: aci, timestamp: quote.id }) };
}

/**
 * A reply to a story contains the story. Signal doesn't mark forwards: a forwarded text can't be told from one that the
 * sender typed, so commands that raise trust need a second step.
 */
function provenanceOf({ storyContext }: Content): Provenance {
  return storyContext == null ? 'typed' : 'story';
}

/**
 * Returns the text with names in place of Signal's placeholders. A command after a mention of the bot is a command,
 * because in a group people write `@Parley /stop`. Only a real mention counts, not a name that reads like the bot's.
 */
function textOf({ message, mentions, attachments }: Content, names: Names): string {
  const captions = (attachments ?? []).flatMap(({ caption }) => caption || []);
  const written = [message ?? '', ...captions].filter((part) => part !== '').join('\n');
  const ranges = mentions ?? [];
  const first = written.search(/\S/);
  const call = ranges.find(
    ({ start, length, uuid }) => start === first && length > 0 && readAci(uuid) === names.bot.aci,
  );
  const end = call === undefined ? 0 : call.start + call.length;
  const isCommand = end > 0 && /^\s*\//.test(written.slice(end));
  return isCommand ? withNames(written, ranges, names, end).trimStart() : withNames(written, ranges, names);
}

/**
 * Each mention is one U+FFFC in the text and a range in UTF-16 code units, as JavaScript counts. They are replaced from
 * the right, so that a name doesn't move the ranges before it. `from`: where the wanted part starts.
 */
function withNames(text: string, mentions: readonly Mention[], names: Names, from = 0): string {
  const pieces: string[] = [];
  let limit = text.length;
  for (const mention of [...mentions].sort((a, b) => b.start - a.start)) {
    const end = mention.start + mention.length;
    if (mention.start < from || end > limit || mention.length === 0) continue;
    pieces.push(text.slice(end, limit), `@${labelOf(mention, names)}`);
    limit = mention.start;
  }
  pieces.push(text.slice(from, limit));
  return cleanText(pieces.reverse().join(''));
}

function mentionsBot(mentions: readonly Mention[], bot: Bot): boolean {
  return mentions.some(({ uuid }) => readAci(uuid) === bot.aci);
}

function labelOf({ uuid, number }: Mention, names: Names): string {
  const aci = readAci(uuid);
  return (aci === undefined ? undefined : personName(aci, names)) ?? number ?? 'somebody';
}

function personName(aci: string, { bot, nameOf }: Names): string {
  return aci === bot.aci ? bot.name : (nameOf(aci) ?? `person ${aci.slice(0, 8)}`);
}

/** A quote without its author's ACI keeps its text: people may be known by their number alone. */
function quoteOf({ quote }: Content, names: Names): InboundQuote | undefined {
  if (!quote) return undefined;
  const { authorUuid, authorNumber, id, text, mentions, attachments = [] } = quote;
  const author = readAci(authorUuid);
  const named = author === undefined ? authorNumber : personName(author, names);
  const files = attachments.flatMap(({ thumbnail }) => (thumbnail ? attachmentOf(thumbnail) : []));
  const described = attachments
    .filter(({ thumbnail }) => !thumbnail?.id)
    .map(({ contentType, filename }) => cleanText(`[file: ${fileLabel(contentType, filename)}]`));
  return {
    ...(author !== undefined && id != null && { messageId: messageIdOf({ author, timestamp: id }) }),
    ...(named && { author: named }),
    text: withNames(text ?? '', mentions ?? [], names),
    ...(described.length > 0 && { described }),
    ...(files.length > 0 && { attachments: files }),
  };
}

function attachmentsOf({ attachments, viewOnce }: Content): readonly AttachmentRef[] {
  const files = (attachments ?? []).flatMap(attachmentOf);
  return viewOnce ? files.map((file) => ({ ...file, isViewOnce: true as const })) : files;
}

/** Leaves out an attachment without an id, since it can't be fetched. */
function attachmentOf({
  id,
  contentType,
  filename,
  size,
  isVoiceNote,
}: SignalAttachment): readonly AttachmentRef[] {
  if (!id) return [];
  return [
    {
      ref: id,
      kind: isVoiceNote ? 'voice' : fileKind(contentType ?? ''),
      ...(filename ? { name: cleanText(filename) } : {}),
      ...(contentType ? { mimeType: contentType } : {}),
      ...(typeof size === 'number' ? { sizeBytes: size } : {}),
    },
  ];
}

// Lines for the content of a message other than words. Pure; core marks them as data and bounds them.

/** Returns a line each, or several for a poll; empty if there is only text. */
function describedIn(content: Content): readonly string[] {
  const { pollCreate, contacts, sticker, payment, previews, attachments } = content;
  const unfetchable = (attachments ?? []).filter(({ id }) => !id);
  const lines = [
    ...(pollCreate ? pollLines(pollCreate) : []),
    ...(contacts ?? []).map(contactLine),
    ...(sticker ? [`Sticker number ${sticker.stickerId ?? '?'} of a sticker pack`] : []),
    ...(payment ? [['Notice of a payment', payment.note].filter(isPresent).join(': ')] : []),
    ...(previews ?? []).map(previewLine),
    ...unfetchable.map(
      ({ contentType, filename }) => `File that isn't on the server: ${fileLabel(contentType, filename)}`,
    ),
  ];
  return lines.map((line) => cleanText(line).replace(/\s+/g, ' ').trim()).filter((line) => line !== '');
}

/** Names a file by its name and type, as far as they are known. */
function fileLabel(contentType: string | null | undefined, filename: string | null | undefined): string {
  return [filename, contentType].filter(isPresent).join(', ') || 'without a name';
}

function isPresent(text: string | null | undefined): text is string {
  return text !== null && text !== undefined && text !== '';
}

function pollLines({
  question,
  options,
  allowMultiple,
}: NonNullable<Content['pollCreate']>): readonly string[] {
  return [
    `Poll${allowMultiple ? ' (several answers allowed)' : ''}: ${question ?? ''}`,
    ...(options ?? []).map((option, index) => `${index + 1}. ${option}`),
  ];
}

function contactLine({ name, phone, email, address, organization }: SharedContact): string {
  const { prefix, given, middle, family, suffix, nickname } = name ?? {};
  const full = [prefix, given, middle, family, suffix].filter(isPresent).join(' ') || nickname;
  const places = (address ?? []).map(({ street, postcode, city, country }) =>
    [street, postcode, city, country].filter(isPresent).join(' '),
  );
  const facts = [full, organization, ...(phone ?? []).map(valueIn), ...(email ?? []).map(valueIn), ...places];
  return `Contact: ${facts.filter(isPresent).join(', ') || 'without a name'}`;
}

function valueIn({ value }: { readonly value?: string | null | undefined }) {
  return value;
}

function previewLine({ url, title, description }: NonNullable<Content['previews']>[number]): string {
  const facts = [title, description, url].filter(isPresent);
  return facts.length === 0 ? '' : `Preview of a link: ${facts.join(' – ')}`;
}
