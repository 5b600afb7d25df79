/**
 * Renders people's messages for the model. Text by strangers is data: it is put between two lines with a
 * random boundary, without role tokens and without anything that looks like such a line.
 */
import type { StoredAttachment } from '#contracts/attachment.ts';
import type { Authority } from '#contracts/outcome.ts';
import {
  cleanLabel,
  cleanUntrusted,
  type Delimiter,
  newDelimiter,
  wrapUntrusted,
} from '../texts/untrusted-text.ts';

export type InboundText = {
  readonly text: string;
  readonly sender: { readonly name: string; readonly authority: Authority };
  /** Ms since the epoch. */
  readonly sentAt: number;
  readonly isGroup: boolean;
  readonly quote?: QuotedText;
  /** The text's origin if the sender didn't write it, which makes it data, not a request. */
  readonly dataAbout?: string;
  /** Lines about content other than words; always data. */
  readonly described?: readonly string[];
  /** Names of fields that Parley doesn't know, of a message without any other content. */
  readonly unreadFields?: readonly string[];
  readonly attachments: readonly StoredAttachment[];
  /** IANA name, for example `Europe/Berlin`. */
  readonly timeZone: string;
};

/** A quoted message. */
export type QuotedText = {
  /** Absent or empty: unknown. */
  readonly author?: string;
  readonly text: string;
  readonly described?: readonly string[];
  readonly unreadFields?: readonly string[];
  /** Lines that name its files. */
  readonly files?: readonly string[];
};

/** A line in somebody's text that looks like one of our labels. */
const IMITATED_LABEL = /^([^\S\r\n\u2028\u2029]*)\[(?=[^\]\n]{0,200}(?:·|\battached\b))/gim;

/** Renders the quoted message, which precedes a message's own text. */
export function renderQuote(quote: QuotedText, boundary: Delimiter = newDelimiter()): string {
  const { author = '', text, described = [], unreadFields = [], files = [] } = quote;
  const unread = unreadFields.length === 0 ? [] : [`(unknown content: ${unreadFields.join(', ')})`];
  const lines = [text, ...described, ...files, ...unread].filter((line) => line !== '');
  return wrapUntrusted(lines.join('\n'), `quote from ${nameOr(author)}`, boundary);
}

/**
 * Renders what a message contains besides words, which is data even if its sender made it: nobody gives an order by a
 * poll's question or a contact's name.
 */
export function renderOther(
  { described = [], unreadFields = [] }: Pick<InboundText, 'described' | 'unreadFields'>,
  boundary: Delimiter = newDelimiter(),
): string {
  if (unreadFields.length > 0) {
    const names = wrapUntrusted(unreadFields.join('\n'), 'names of unknown fields', boundary);
    return `(Parley can't read this message: it has no known content, only these fields. Its sender has been told.)\n${names}`;
  }
  if (described.length === 0) return '';
  return wrapUntrusted(described.join('\n'), 'what the message contains besides words', boundary);
}

/** Renders a message. In groups it begins with sender and time; quotes, forwards and files are marked as data. */
export function renderInbound(message: InboundText, boundary: Delimiter = newDelimiter()): string {
  const { quote, dataAbout, attachments } = message;
  const pieces = [
    ...(quote ? [renderQuote(quote, boundary)] : []),
    ...(dataAbout === undefined ? ownPieces(message, boundary) : othersPieces(message, dataAbout, boundary)),
    ...attachments.map(attachmentLine),
  ];
  return pieces.filter((piece) => piece !== '').join('\n');
}

function ownPieces(message: InboundText, boundary: Delimiter): readonly string[] {
  return [ownWords(message), renderOther(message, boundary)];
}

/** Renders another's words together with what else the message contains; both are theirs. */
function othersPieces(message: InboundText, dataAbout: string, boundary: Delimiter): readonly string[] {
  const { text, described = [], unreadFields = [] } = message;
  const lines = [text, ...described].filter((line) => line !== '').join('\n');
  const label = labelOf(message);
  if (unreadFields.length > 0 || lines === '') return [label, renderOther(message, boundary)];
  return [[label, wrapUntrusted(lines, dataAbout, boundary)].join(' ').trimStart()];
}

function ownWords(message: InboundText): string {
  return `${labelOf(message)} ${unlabeled(message.text)}`.trim();
}

function labelOf({ isGroup, sender, sentAt, timeZone }: InboundText): string {
  if (!isGroup) return '';
  return `[${nameOr(sender.name)} (${sender.authority}) · ${timeOf(sentAt, timeZone)}]`;
}

function attachmentLine(attachment: StoredAttachment): string {
  const name = nameOr(attachment.name);
  if (attachment.kind === 'missing')
    return `[attached: "${name}", not available: ${cleanLabel(attachment.reason)}]`;
  return `[attached: "${name}", ${cleanLabel(attachment.mimeType)}, ${sizeOf(attachment.sizeBytes)}]`;
}

function unlabeled(text: string): string {
  return cleanUntrusted(text).replace(IMITATED_LABEL, '$1(');
}

function nameOr(name: string): string {
  return cleanLabel(name) || 'someone';
}

function sizeOf(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} kB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** Returns, for example, `Fri 2026-11-20 14:05`. */
function timeOf(ms: number, timeZone: string): string {
  const parts = formatOf(timeZone).formatToParts(ms);
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.find((each) => each.type === type)?.value ?? '';
  return `${part('weekday').replace('.', '')} ${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')}`;
}

/** By time zone, because creating a format takes longer than using it a thousand times. */
const knownFormats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = knownFormats.get(timeZone);
  if (known) return known;
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  knownFormats.set(timeZone, format);
  return format;
}
