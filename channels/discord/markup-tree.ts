/**
 * Nested spans → a tree in which no style starts or ends with white space, and code is inside no style.
 */
import { isCode } from '#channel-kit/nested-spans.ts';
import type { PlainSpanKind, Span } from '#contracts/span.ts';

export type Style = Exclude<PlainSpanKind, 'code' | 'quote'>;

export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'code-block'; readonly text: string; readonly language: string }
  | { readonly kind: 'style'; readonly style: Style; readonly pieces: readonly Piece[] }
  | { readonly kind: 'link'; readonly url: string; readonly text: string; readonly pieces: readonly Piece[] };

export type Range = { readonly start: number; readonly end: number };

type MarkedRange = Range & { readonly mark: Span };

/** `spans`: as returned by `nestedSpans`. */
export function piecesOf(text: string, range: Range, spans: readonly Span[]): readonly Piece[] {
  return build(
    text,
    range,
    spans.flatMap((span) => markIn(text, range, span)),
  );
}

export function rangeOf(span: { readonly start: number; readonly length: number }): Range {
  return { start: span.start, end: span.start + span.length };
}

/** Returns the span within this range, without blanks at its edges; empty if nothing is left. */
function markIn(text: string, within: Range, mark: Span): readonly MarkedRange[] {
  // A line break at the edge of code belongs to the text, because a quote that follows must start a line.
  const blank = isCode(mark) ? /\n/ : /\s/;
  const { start, end } = rangeOf(mark);
  const part = { start: Math.max(start, within.start), end: Math.min(end, within.end) };
  const range = trimmed(text, part, blank);
  return range.end > range.start ? [{ ...range, mark }] : [];
}

/** Returns the range without `blank` characters at its edges. */
export function trimmed(text: string, range: Range, blank: RegExp): Range {
  let { start, end } = range;
  while (start < end && blank.test(text.charAt(start))) start += 1;
  while (start < end && blank.test(text.charAt(end - 1))) end -= 1;
  return { start, end };
}

/** `marked`: ordered by their start, outer before inner. */
function build(text: string, range: Range, marked: readonly MarkedRange[]): readonly Piece[] {
  const pieces: Piece[] = [];
  let at = range.start;
  const plain = (end: number) => {
    if (end > at) pieces.push({ kind: 'text', text: text.slice(at, end) });
  };
  for (const one of marked) {
    if (one.start < at) continue; // It is inside the previous one.
    plain(one.start);
    const inner = marked.filter((other) => other !== one && other.start >= one.start && other.end <= one.end);
    pieces.push(...marksOf(text, one, build(text, one, inner)));
    at = one.end;
  }
  plain(range.end);
  return pieces;
}

/** Wraps the pieces in their style. A quote is written line by line, not with marks around it. */
function marksOf(
  text: string,
  { start, end, mark }: MarkedRange,
  pieces: readonly Piece[],
): readonly Piece[] {
  const content = text.slice(start, end);
  switch (mark.kind) {
    case 'quote':
      return pieces;
    case 'code':
      return [{ kind: 'code', text: content }];
    case 'code-block':
      return [{ kind: 'code-block', text: content, language: mark.language ?? '' }];
    case 'link':
      return [{ kind: 'link', url: mark.url, text: content, pieces }];
    default:
      return [{ kind: 'style', style: mark.kind, pieces }];
  }
}
