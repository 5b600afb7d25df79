/**
 * Splits a text into messages that a network accepts: at a paragraph, else a line, a sentence or a word, and only
 * then inside a word, but never inside a character as people see it. A code block that fits into one message
 * isn't split; a longer one is closed and reopened. The white space at a cut is dropped.
 */
import type { Capabilities } from '#contracts/capabilities.ts';
import type { FormattedText, Span } from '#contracts/formatted-text.ts';

type Cut = {
  /** Where the piece ends, and where the next one begins; there is only white space between them. */
  readonly end: number;
  readonly next: number;
};

/** A cut before this share of the limit would make a needlessly short message. */
const LEAST_FILL = 0.25;

/** Splits a text into chunks that the network accepts; no chunk is empty or only white space. */
export function chunkFormatted(
  formatted: FormattedText,
  limits: Capabilities['text'],
): readonly FormattedText[] {
  return [...chunksOf(formatted, limits)];
}

/** Yields the same chunks one by one, so that the caller can pause between those of a long text. Linear. */
export function* chunksOf(formatted: FormattedText, limits: Capabilities['text']): Generator<FormattedText> {
  const { text } = formatted;
  const from = new SpanCursor(formatted);
  let start = 0;
  while (start < text.length) {
    from.move(start);
    const cut = findFitting(from, start, limits);
    if (text.slice(start, cut.end).trim() !== '') yield from.sliceTo(cut.end);
    start = cut.next;
  }
}

/** Enough for one character of two units; a shorter piece is never tried. */
const minLength = 2;
/** This many shorter pieces are tried by proportion before the length is halved. */
const sharedAttempts = 4;

/** Tries shorter pieces until one fits, because the native form may be longer than the text. */
function findFitting(from: SpanCursor, start: number, limits: Capabilities['text']): Cut {
  const { maxLength } = limits;
  const end = from.text.length;
  let length = maxLength;
  for (let tried = 0; ; tried += 1) {
    const cut = end - start <= length ? { end, next: end } : findCut(from, start, length);
    if (limits.nativeLength === undefined && cut.end - start <= maxLength) return cut;
    const taken = nativeLength(from.sliceTo(cut.end), limits);
    if (taken <= maxLength || length <= minLength) return cut;
    const share = Math.floor(((cut.end - start) * maxLength) / taken);
    const next = tried < sharedAttempts ? share : Math.min(share, Math.floor(length / 2));
    length = Math.max(minLength, Math.min(length - 1, next));
  }
}

/** Returns how much of a message's limit a text takes. */
export function nativeLength(formatted: FormattedText, limits: Capabilities['text']): number {
  return limits.nativeLength?.(formatted) ?? formatted.text.length;
}

/** Finds the spans of consecutive pieces, visiting each span once. */
class SpanCursor {
  readonly text: string;
  readonly #spans: readonly Span[];
  /** Spans that began before the start and continue after it. */
  #open: readonly Span[] = [];
  #next = 0;
  #start = 0;

  constructor({ text, spans }: FormattedText) {
    this.text = text;
    const isOrdered = spans.every((span, index) => span.start >= (spans[index - 1]?.start ?? 0));
    this.#spans = isOrdered ? spans : spans.toSorted((a, b) => a.start - b.start);
  }

  /** Moves the start, only forwards. */
  move(start: number): void {
    const begun: Span[] = [...this.#open];
    for (let span = this.#spans[this.#next]; span && span.start < start; span = this.#spans[this.#next]) {
      begun.push(span);
      this.#next += 1;
    }
    this.#open = begun.filter((span) => span.start + span.length > start);
    this.#start = start;
  }

  /** Returns the piece from the cursor's start, with its spans clipped. Offsets in UTF-16 units. */
  sliceTo(end: number): FormattedText {
    const start = this.#start;
    const spans: Span[] = [];
    for (const span of this.#until(end)) {
      const from = Math.max(span.start, start);
      const to = Math.min(span.start + span.length, end);
      if (to > from) spans.push(clipSpan(span, from - start, to - from));
    }
    return { text: this.text.slice(start, end), spans };
  }

  /** Returns the code block that a cut would split. */
  blockAt(cut: Cut): Span | undefined {
    for (const span of this.#until(cut.next)) {
      if (span.kind === 'code-block' && cut.end < span.start + span.length) return span;
    }
    return undefined;
  }

  *#until(end: number): Generator<Span> {
    yield* this.#open;
    for (let index = this.#next; index < this.#spans.length; index += 1) {
      const span = this.#spans[index];
      if (!span || span.start >= end) return;
      yield span;
    }
  }
}

/** A table that is cut is only shown as text. */
function clipSpan(span: Span, start: number, length: number): Span {
  if (span.kind !== 'code-block' || span.table === undefined || length === span.length)
    return { ...span, start, length };
  const { table: _, ...block } = span;
  return { ...block, start, length };
}

function findCut(from: SpanCursor, start: number, maxLength: number): Cut {
  const { text } = from;
  const limit = start + maxLength;
  const cut = bestCut(text, start, limit);
  const block = from.blockAt(cut);
  if (!block) return cut;
  const before = text.slice(start, block.start);
  if (before.trim() !== '' && block.length <= maxLength) {
    return { end: start + before.trimEnd().length, next: block.start };
  }
  return cutInCode(text, Math.max(start, block.start), start, limit);
}

/** Searches backwards from the limit; a break right after the limit counts too. */
function bestCut(text: string, start: number, limit: number): Cut {
  const least = start + Math.floor((limit - start) * LEAST_FILL);
  const found: Partial<Record<Break, number>> = {};
  for (let end = limit; end > start; end -= 1) {
    const kind = breakAt(text, end);
    if (kind === undefined) continue;
    if (kind === 'paragraph' && end >= least) return widen(text, end);
    if (end >= least) found[kind === 'stop' ? 'sentence' : kind] ??= end;
    if (kind !== 'stop') found.word ??= end;
    if (end < least && found.word !== undefined) break;
  }
  const best = found.line ?? found.sentence ?? found.word;
  return best === undefined ? hardCut(text, start, limit) : widen(text, best);
}

/** From the best place to cut to the worst. `stop`: the end of a sentence without a space after it. */
type Break = 'paragraph' | 'line' | 'sentence' | 'stop' | 'word';

/** Returns the kind of break at `end`, which is before the white space. */
function breakAt(text: string, end: number): Break | undefined {
  if (isSpace(text, end - 1)) return undefined;
  if (!isSpace(text, end)) return /[。！？]/.test(text.charAt(end - 1)) ? 'stop' : undefined;
  const gap = gapAt(text, end);
  if (/\n[ \t]*\n/.test(gap)) return 'paragraph';
  if (gap.includes('\n')) return 'line';
  return /[.!?…。！？]["'”’)\]*_]{0,3}$/.test(text.slice(Math.max(0, end - 4), end)) ? 'sentence' : 'word';
}

const SPACE = /\s/;
const GAP = /\s*/y;

function isSpace(text: string, index: number): boolean {
  return SPACE.test(text.charAt(index));
}

function gapAt(text: string, index: number): string {
  GAP.lastIndex = index;
  return GAP.exec(text)?.[0] ?? '';
}

/** Skips all white space after a cut except the next line's indentation. */
function widen(text: string, end: number): Cut {
  const gap = gapAt(text, end);
  const lastBreakAt = gap.lastIndexOf('\n');
  const taken = lastBreakAt === -1 ? gap.length : lastBreakAt + 1;
  return { end, next: end + taken };
}

/** Drops only the one line break at the cut, because every space in code matters. */
function cutInCode(text: string, from: number, start: number, limit: number): Cut {
  const lineEnd = text.lastIndexOf('\n', limit);
  if (lineEnd > from && text.slice(start, lineEnd).trim() !== '') return { end: lineEnd, next: lineEnd + 1 };
  return hardCut(text, start, limit);
}

function hardCut(text: string, start: number, limit: number): Cut {
  const end = characterStart(text, start, limit);
  return { end, next: end };
}

/** Returns the last place at or before `limit` that is between two characters as people see them. */
function characterStart(text: string, start: number, limit: number): number {
  const segments = new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(
    text.slice(start, limit + 64),
  );
  const boundary = segments.containing(limit - start)?.index ?? limit - start;
  if (boundary > 0) return start + boundary;
  // One character is longer than a message (stacked marks): at least keep surrogate pairs together.
  const splitsPair =
    /[\udc00-\udfff]/.test(text.charAt(limit)) && /[\ud800-\udbff]/.test(text.charAt(limit - 1));
  return splitsPair && limit - start > 1 ? limit - 1 : limit;
}
