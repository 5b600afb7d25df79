/** What the suites of inputs compare of an event. */
import type { AttachmentRef } from '#contracts/attachment.ts';
import type { InboundEvent, InboundQuote } from '#contracts/envelope.ts';

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
