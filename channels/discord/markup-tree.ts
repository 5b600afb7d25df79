/**
 * Spans → a tree in which every style lies wholly in its parent and neither begins nor ends with white
 * space, and code lies in nothing. Spans may come in any order and overlap as they like.
 */
import type { PlainSpanKind, Span } from '#contracts/span.ts';

export type Style = Exclude<PlainSpanKind, 'code' | 'quote'>;

export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'code-block'; readonly text: string; readonly language: string }
  | { readonly kind: 'style'; readonly style: Style; readonly pieces: readonly Piece[] }
  | { readonly kind: 'link'; readonly url: string; readonly text: string; readonly pieces: readonly Piece[] };

export type Range = { readonly start: number; readonly end: number };

/** The kind of a range: code or a style of the text. */
type Mark =
  | { readonly kind: 'code' }
  | { readonly kind: 'code-block'; readonly language: string }
  | { readonly kind: 'style'; readonly style: Style }
  | { readonly kind: 'link'; readonly url: string };
type MarkedRange<M extends Mark = Mark> = Range & { readonly mark: M };

export function piecesOf(text: string, range: Range, spans: readonly Span[]): readonly Piece[] {
  const marked = spans.flatMap((span) => markOf(text, span, range));
  const codes = withoutOverlaps(marked.filter(({ mark }) => mark.kind.startsWith('code')))
    // A line break at its edge is the text's: a quote that follows must begin a line.
    .flatMap((code) => trimmed(text, code, /\n/));
  const links = withoutOverlaps(marked.filter(({ mark }) => mark.kind === 'link'));
  const styles = joined(marked.filter(({ mark }) => mark.kind === 'style'));
  const free = [...links, ...styles].flatMap((one) => subtract(one, codes));
  return build(text, range, [...codes, ...nest(text, free)]);
}

export function rangeOf(span: { readonly start: number; readonly length: number }): Range {
  return { start: span.start, end: span.start + span.length };
}

/** The span as a mark of this range; nothing when it lies outside or is a quote, which is made of lines. */
function markOf(text: string, span: Span, within: Range): readonly MarkedRange[] {
  const { start: from, end: to } = rangeOf(span);
  let start = Math.max(from, within.start);
  let end = Math.min(to, within.end);
  if (isInsidePair(text, start)) start -= 1;
  if (isInsidePair(text, end)) end += 1;
  if (!(Number.isInteger(start) && Number.isInteger(end) && end > start)) return [];
  switch (span.kind) {
    case 'quote':
      return [];
    case 'code':
      return [{ start, end, mark: { kind: 'code' } }];
    case 'code-block':
      return [{ start, end, mark: { kind: 'code-block', language: span.language ?? '' } }];
    case 'link':
      return [{ start, end, mark: { kind: 'link', url: span.url } }];
    default:
      return [{ start, end, mark: { kind: 'style', style: span.kind } }];
  }
}

function isInsidePair(text: string, index: number): boolean {
  return /[\ud800-\udbff]/.test(text.charAt(index - 1)) && /[\udc00-\udfff]/.test(text.charAt(index));
}

/** The first of those that share a character stays. */
function withoutOverlaps(marked: readonly MarkedRange[]): readonly MarkedRange[] {
  let end = 0;
  return marked.toSorted(byStart).filter((one) => {
    if (one.start < end) return false;
    end = one.end;
    return true;
  });
}

/** Ranges of one style that touch are one range. */
function joined(styles: readonly MarkedRange[]): readonly MarkedRange[] {
  const groups = Map.groupBy(styles, ({ mark }) => (mark.kind === 'style' ? mark.style : ''));
  return [...groups.values()].flatMap((group) => {
    const ranges: { start: number; end: number; mark: Mark }[] = [];
    for (const one of group.toSorted(byStart)) {
      const last = ranges.at(-1);
      if (last && one.start <= last.end) last.end = Math.max(last.end, one.end);
      else ranges.push({ ...one });
    }
    return ranges;
  });
}

function subtract(marked: MarkedRange, holes: readonly MarkedRange[]): readonly MarkedRange[] {
  let left: readonly MarkedRange[] = [marked];
  for (const hole of holes) {
    left = left.flatMap((one) =>
      hole.end <= one.start || hole.start >= one.end
        ? [one]
        : [
            { ...one, end: hole.start },
            { ...one, start: hole.end },
          ].filter(({ start, end }) => end > start),
    );
  }
  return left;
}

/** Spans that cross again and again fall into ever more pieces; what is beyond these loses its style. */
const mostPieces = 400;

/** Cuts what crosses the end of what began before it, and trims white space, until all lies one in another. */
function nest(text: string, marked: readonly MarkedRange[]): readonly MarkedRange[] {
  const waiting = marked.flatMap((one) => trimmed(text, one)).toSorted((a, b) => byStart(b, a));
  const placed: MarkedRange[] = [];
  /** Ranges around the current position, innermost last. */
  const open: MarkedRange[] = [];
  for (let one = waiting.pop(); one && placed.length < mostPieces; one = waiting.pop()) {
    const { start, end } = one;
    while (open.length > 0 && (open.at(-1)?.end ?? 0) <= start) open.pop();
    const crossed = open.at(-1);
    if (!crossed || crossed.end >= end) {
      placed.push(one);
      open.push(one);
      continue;
    }
    const halves = [
      { ...one, end: crossed.end },
      { ...one, start: crossed.end },
    ].flatMap((half) => trimmed(text, half));
    for (const half of halves) putInOrder(waiting, half);
  }
  return placed;
}

/** `waiting` is in the order of `byStart`, from the last to the first. */
function putInOrder(waiting: MarkedRange[], one: MarkedRange): void {
  let at = waiting.length;
  for (let next = waiting[at - 1]; next && byStart(next, one) < 0; next = waiting[at - 1]) at -= 1;
  waiting.splice(at, 0, one);
}

/** Without what is `blank` at its edges; nothing when it is all blank. */
function trimmed(text: string, marked: MarkedRange, blank = /\s/): readonly MarkedRange[] {
  let { start, end } = marked;
  while (start < end && blank.test(text.charAt(start))) start += 1;
  while (start < end && blank.test(text.charAt(end - 1))) end -= 1;
  return end > start ? [{ ...marked, start, end }] : [];
}

/** Outer before inner; a link outside of what covers the same text, so that its label is whole. */
function byStart(a: MarkedRange, b: MarkedRange): number {
  return (
    a.start - b.start || b.end - a.end || Number(b.mark.kind === 'link') - Number(a.mark.kind === 'link')
  );
}

function build(text: string, range: Range, marked: readonly MarkedRange[]): readonly Piece[] {
  const pieces: Piece[] = [];
  let at = range.start;
  const plain = (end: number) => {
    if (end > at) pieces.push({ kind: 'text', text: text.slice(at, end) });
  };
  const waiting = marked.toSorted((a, b) => byStart(b, a));
  for (let one = waiting.pop(); one; one = waiting.pop()) {
    const { start, end, mark } = one;
    plain(start);
    const inner: MarkedRange[] = [];
    for (let next = waiting.at(-1); next && next.start < end; next = waiting.at(-1)) {
      inner.push(next);
      waiting.pop();
    }
    const content = text.slice(start, end);
    if (mark.kind === 'code' || mark.kind === 'code-block') pieces.push({ ...mark, text: content });
    else if (mark.kind === 'link') pieces.push({ ...mark, text: content, pieces: build(text, one, inner) });
    else pieces.push({ ...mark, pieces: build(text, one, inner) });
    at = end;
  }
  plain(range.end);
  return pieces;
}
