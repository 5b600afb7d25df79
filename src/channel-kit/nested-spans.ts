/**
 * Repairs spans so that every network can show them: they are within the text, split no character and cover more than
 * white space; any two are disjoint or nested; no kind is nested in itself, and code only in a quote.
 */
import type { FormattedText, Span } from '#contracts/formatted-text.ts';

/** Decides which of two clashing spans keeps its range: the one with the lower rank. */
const rank = { 'code-block': 0, link: 1, code: 2, quote: 3 } as const;

/** Further spans are ignored, because each is compared with all before it. */
const maxSpans = 200;

/** Returns the repaired spans, ordered by their start, the longer first. */
export function nestedSpans({ text, spans }: FormattedText): readonly Span[] {
  const ordered = fitSpans(spans, maxSpans)
    .flatMap((span) => fit(text, span))
    .sort((a, b) => rankOf(a) - rankOf(b) || a.start - b.start);
  const placed: Span[] = [];
  for (const span of ordered) placed.push(...place(span, placed).filter((piece) => isShown(text, piece)));
  return placed.sort((a, b) => a.start - b.start || b.length - a.length);
}

function rankOf(span: Span): number {
  return span.kind in rank ? rank[span.kind as keyof typeof rank] : 4;
}

/** Cuts a span to the text and moves its ends out of surrogate pairs. */
function fit(text: string, span: Span): readonly Span[] {
  let start = Math.max(0, span.start);
  let end = Math.min(text.length, span.start + span.length);
  if (isInsidePair(text, start)) start -= 1;
  if (isInsidePair(text, end)) end += 1;
  return Number.isInteger(start) && Number.isInteger(end) && end > start ? [withRange(span, start, end)] : [];
}

/**
 * Returns what remains of a span next to those already placed: it is first reduced by those that exclude it, then cut
 * where it crosses others.
 */
function place(span: Span, placed: readonly Span[]): readonly Span[] {
  const touched = placed.filter((other) => overlaps(span, other));
  const excluding = touched.filter((other) => excludes(span, other));
  const free = cut([span], excluding, subtract);
  return cut(free, touched, (piece, other) => (isNested(piece, other) ? [piece] : splitAt(piece, other)));
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

/** True if the two may not share any character. */
function excludes(a: Span, b: Span): boolean {
  if (a.kind === b.kind) return true;
  if (a.kind === 'quote' || b.kind === 'quote') return false;
  return isCode(a) || isCode(b);
}

/** True for code, which is shown unchanged, including its white space. */
export function isCode({ kind }: Span): boolean {
  return kind === 'code' || kind === 'code-block';
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

/** Splits a span that partly overlaps another, at the other's edge. */
function splitAt(span: Span, other: Span): readonly Span[] {
  const end = span.start + span.length;
  const edge = other.start > span.start ? other.start : other.start + other.length;
  return [withRange(span, span.start, edge), withRange(span, edge, end)];
}

function withRange(span: Span, start: number, end: number): Span {
  return { ...span, start, length: end - start };
}

function isShown(text: string, span: Span): boolean {
  return isCode(span) || text.slice(span.start, span.start + span.length).trim() !== '';
}

function isInsidePair(text: string, index: number): boolean {
  return /[\ud800-\udbff]/.test(text.charAt(index - 1)) && /[\udc00-\udfff]/.test(text.charAt(index));
}

/** Keeps the first `most` spans of a text; links before styles, since their addresses exist nowhere else. */
export function fitSpans(spans: readonly Span[], most: number): readonly Span[] {
  if (spans.length <= most) return spans;
  const links = spans.filter(({ kind }) => kind === 'link').slice(0, most);
  const others = spans.filter(({ kind }) => kind !== 'link').slice(0, most - links.length);
  const kept = new Set([...links, ...others]);
  return spans.filter((span) => kept.has(span));
}
