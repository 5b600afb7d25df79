/**
 * Spans → Telegram entities. Telegram's rules (Bot API, "Formatting options"): no partial overlap,
 * nothing but a quote around code, no quote in a quote, no link in a link, no cut through a
 * surrogate pair. Core's spans may break each of them, so they are repaired here, not refused there.
 */
import { fitSpans } from '#channel-kit/fit-spans.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { PlainSpanKind, Span } from '#contracts/span.ts';

export type Entity =
  | { readonly type: (typeof plainTypes)[PlainSpanKind]; readonly offset: number; readonly length: number }
  | { readonly type: 'text_link'; readonly offset: number; readonly length: number; readonly url: string }
  | { readonly type: 'pre'; readonly offset: number; readonly length: number; readonly language?: string };

const plainTypes = {
  bold: 'bold',
  italic: 'italic',
  underline: 'underline',
  strikethrough: 'strikethrough',
  spoiler: 'spoiler',
  code: 'code',
  quote: 'blockquote',
} as const;

/** Which span keeps its range when two clash: the earlier one here. */
const rank = { 'code-block': 0, link: 1, code: 2, quote: 3 } as const;

/** More entities than this are dropped by Telegram. */
const mostEntities = 100;
/** More spans than this are not even looked at: each is compared with those before it. */
const mostSpans = 200;

export function entitiesOf({ text, spans }: FormattedText): Entity[] {
  const ordered = fitSpans(spans, mostSpans)
    .flatMap((span) => fit(text, span))
    .sort((a, b) => rankOf(a) - rankOf(b) || a.start - b.start);
  const placed: Span[] = [];
  for (const span of ordered) placed.push(...place(span, placed).filter((piece) => isShown(text, piece)));
  placed.sort(inOrder);
  return [...fitSpans(placed, mostEntities)].sort(inOrder).map(toEntity);
}

function inOrder(a: Span, b: Span): number {
  return a.start - b.start || b.length - a.length;
}

function rankOf(span: Span): number {
  return span.kind in rank ? rank[span.kind as keyof typeof rank] : 4;
}

/**
 * Cuts a span to the text and moves its ends out of surrogate pairs. Links other than to the web go:
 * `tg://user` would ping a person, and Telegram refuses the rest.
 */
function fit(text: string, span: Span): readonly Span[] {
  let start = Math.max(0, span.start);
  let end = Math.min(text.length, span.start + span.length);
  if (isInsidePair(text, start)) start -= 1;
  if (isInsidePair(text, end)) end += 1;
  if (span.kind === 'link' && !/^https?:\/\/\S+$/i.test(span.url)) return [];
  return Number.isInteger(start) && Number.isInteger(end) && end > start ? [withRange(span, start, end)] : [];
}

/**
 * The rest of a span beside those already placed: first without what excludes it, then cut where it crosses.
 */
function place(span: Span, placed: readonly Span[]): readonly Span[] {
  const excluding = placed.filter((other) => excludes(span, other));
  const free = cut([span], excluding, subtract);
  return cut(free, placed, (piece, other) => (isNested(piece, other) ? [piece] : splitAt(piece, other)));
}

function cut(
  spans: readonly Span[],
  others: readonly Span[],
  by: (piece: Span, other: Span) => readonly Span[],
): readonly Span[] {
  let pieces = spans;
  for (const other of others)
    pieces = pieces.flatMap((piece) => (overlaps(piece, other) ? by(piece, other) : [piece]));
  return pieces;
}

/** True when the two may not share a single character. */
function excludes(a: Span, b: Span): boolean {
  if (a.kind === b.kind) return true;
  if (a.kind === 'quote' || b.kind === 'quote') return false;
  return isCode(a) || isCode(b);
}

function isCode(span: Span): boolean {
  return span.kind === 'code' || span.kind === 'code-block';
}

function overlaps(a: Span, b: Span): boolean {
  return a.start < b.start + b.length && b.start < a.start + a.length;
}

function isNested(a: Span, b: Span): boolean {
  const [outer, inner] = a.length >= b.length ? [a, b] : [b, a];
  return inner.start >= outer.start && inner.start + inner.length <= outer.start + outer.length;
}

function subtract(span: Span, other: Span): readonly Span[] {
  const end = span.start + span.length;
  const otherEnd = other.start + other.length;
  return [
    ...(other.start > span.start ? [withRange(span, span.start, other.start)] : []),
    ...(otherEnd < end ? [withRange(span, otherEnd, end)] : []),
  ];
}

/** Cuts a span that half overlaps another in two, at the other's edge. */
function splitAt(span: Span, other: Span): readonly Span[] {
  const end = span.start + span.length;
  const edge = other.start > span.start ? other.start : other.start + other.length;
  return [withRange(span, span.start, edge), withRange(span, edge, end)];
}

function withRange(span: Span, start: number, end: number): Span {
  return { ...span, start, length: end - start };
}

/** Telegram drops what covers white space only; code may be white. */
function isShown(text: string, span: Span): boolean {
  return isCode(span) || text.slice(span.start, span.start + span.length).trim() !== '';
}

function isInsidePair(text: string, index: number): boolean {
  const before = text.charCodeAt(index - 1);
  const after = text.charCodeAt(index);
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

function toEntity(span: Span): Entity {
  const { start: offset, length } = span;
  if (span.kind === 'link') return { type: 'text_link', offset, length, url: span.url };
  if (span.kind === 'code-block') {
    const language = span.language?.slice(0, 32);
    return { type: 'pre', offset, length, ...(language ? { language } : {}) };
  }
  return { type: plainTypes[span.kind], offset, length };
}
