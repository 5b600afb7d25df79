/**
 * Renders people's messages for the model. Text by strangers is data: it is put between two lines with a
 * random boundary, without role tokens and without anything that looks like such a line.
 */
import type { StoredAttachment } from '#contracts/attachment.ts';
import type { Authority } from '#contracts/outcome.ts';
import { cleanLabel, cleanUntrusted } from '../texts/clean-untrusted.ts';
import { type Delimiter, newDelimiter, wrapUntrusted } from '../texts/wrap-untrusted.ts';

export type InboundText = {
  readonly text: string;
  readonly sender: { readonly name: string; readonly authority: Authority };
  /** Ms since the epoch. */
  readonly sentAt: number;
  readonly isGroup: boolean;
  readonly quote?: { readonly author: string; readonly text: string };
  /** The text's origin if the sender didn't write it, which makes it data, not a request. */
  readonly dataAbout?: string;
  readonly attachments: readonly StoredAttachment[];
  /** IANA name, for example `Europe/Berlin`. */
  readonly timeZone: string;
};

/** A line in somebody's text that looks like one of our labels. */
const IMITATED_LABEL = /^([^\S\r\n\u2028\u2029]*)\[(?=[^\]\n]{0,200}(?:·|\battached\b))/gim;

/** Renders the quoted message, which precedes a message's own text. */
export function renderQuote(
  quote: NonNullable<InboundText['quote']>,
  boundary: Delimiter = newDelimiter(),
): string {
  return wrapUntrusted(quote.text, `quote from ${nameOr(quote.author)}`, boundary);
}

/** Renders a message. In groups it begins with sender and time; quotes, forwards and files are marked as data. */
export function renderInbound(message: InboundText, boundary: Delimiter = newDelimiter()): string {
  const { quote, dataAbout, attachments } = message;
  const pieces = [
    ...(quote ? [renderQuote(quote, boundary)] : []),
    dataAbout === undefined
      ? ownWords(message)
      : [labelOf(message), wrapUntrusted(message.text, dataAbout, boundary)].join(' ').trimStart(),
    ...attachments.map(attachmentLine),
  ];
  return pieces.filter((piece) => piece !== '').join('\n');
}

function ownWords(message: InboundText): string {
  return `${labelOf(message)} ${unlabelled(message.text)}`.trim();
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

function unlabelled(text: string): string {
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
