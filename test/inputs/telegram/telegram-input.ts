import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundEvent, InboundQuote } from '#contracts/envelope.ts';

/** An update in a shape that Telegram sends, in our own words, and how Parley reads it. */
export type TelegramInput = {
  readonly name: string;
  /** Where the shape was seen. */
  readonly shape: string;
  readonly update: Readonly<Record<string, unknown>>;
  readonly read: ReadInput;
};

/** The parts of an event that the corpus compares; absent: empty. */
export type ReadInput = {
  readonly event: InboundEvent['kind'];
  readonly text?: string;
  readonly shown?: string;
  readonly described?: readonly string[];
  /** `kind ref` of each file. */
  readonly media?: readonly string[];
  readonly quote?: Omit<ReadInput, 'event'> & { readonly author?: string; readonly of?: string };
  /** Whose words they are, if not the sender's own. */
  readonly origin?: string;
  readonly callsBot?: true;
  readonly album?: string;
  /** It only reports something, so nobody has to answer. */
  readonly startsNoRun?: true;
  readonly unknown?: readonly string[];
  /** The beginning of the name under which the event is refused. */
  readonly refused?: string;
};

const ada = { id: 501, is_bot: false, first_name: 'Ada', last_name: 'Lind' };
const dm = { id: 501, type: 'private', first_name: 'Ada' };
export const group = { id: -1_001_000_000_032, type: 'supergroup', title: 'Allotment' };
export const bea = { id: 502, is_bot: false, first_name: 'Bea' };

export type MessageFields = Readonly<Record<string, unknown>>;

/** A message to the bot in a private chat, unless the fields say otherwise. */
export const aMessage = (fields: MessageFields): MessageFields => ({
  message_id: 90,
  date: 1_795_776_000,
  chat: dm,
  from: ada,
  ...fields,
});
/** A message in the group, by somebody else. */
export const inGroup = (fields: MessageFields): MessageFields =>
  aMessage({ chat: group, from: bea, ...fields });

export const message = (fields: MessageFields) => ({ update_id: 7, message: aMessage(fields) });
export const groupMessage = (fields: MessageFields) => ({ update_id: 7, message: inGroup(fields) });
export const edited = (fields: MessageFields) => ({
  update_id: 7,
  edited_message: aMessage({ edit_date: 1_795_776_060, ...fields }),
});

/** A file as Telegram describes it; `ref` is its `file_id`. */
export const aFile = (ref: string, fields: MessageFields = {}): MessageFields => ({
  file_id: ref,
  file_unique_id: `u-${ref}`,
  file_size: 1200,
  ...fields,
});

/** Marks the first occurrence of `part` in `text`. */
export const mark = (
  type: string,
  text: string,
  part: string,
  fields: MessageFields = {},
): MessageFields => ({
  type,
  offset: text.indexOf(part),
  length: part.length,
  ...fields,
});

/** Returns what the corpus compares of an event. */
export function summarize(event: InboundEvent): ReadInput {
  if (event.kind === 'unsupported') return { event: event.kind, refused: event.name };
  if (event.kind === 'edit') return withoutEmpty({ ...wordsOf(event), event: event.kind });
  if (event.kind !== 'message') return { event: event.kind };
  const { quote, provenance, mentionsBot, album, startsNoRun } = event;
  return withoutEmpty({
    ...wordsOf(event),
    event: event.kind,
    ...(quote && { quote: quoteOf(quote) }),
    ...(provenance !== 'typed' && { origin: provenance }),
    ...(mentionsBot && { callsBot: true as const }),
    ...(album !== undefined && { album }),
    ...(startsNoRun && { startsNoRun }),
  });
}

type WordsIn = Partial<InboundQuote> & { readonly attachments?: readonly AttachmentRef[] };

function wordsOf({ text, shown, described, attachments, unknownFields }: WordsIn): Omit<ReadInput, 'event'> {
  const hasContent = text?.trim() || described?.length || attachments?.length;
  return {
    ...(text && { text }),
    ...(shown !== undefined && shown !== text && { shown }),
    ...(described && { described }),
    ...(attachments && { media: attachments.map(({ kind, ref }) => `${kind} ${ref}`) }),
    ...(unknownFields && !hasContent && { unknown: unknownFields }),
  };
}

function quoteOf(quote: InboundQuote): NonNullable<ReadInput['quote']> {
  const { author, messageId } = quote;
  return withoutEmpty({
    ...wordsOf(quote),
    ...(author && { author }),
    ...(messageId !== undefined && { of: messageId }),
  });
}

function withoutEmpty<Fields extends object>(fields: Fields): Fields {
  const kept = Object.entries(fields).filter(([, value]) => !Array.isArray(value) || value.length > 0);
  return Object.fromEntries(kept) as Fields;
}
