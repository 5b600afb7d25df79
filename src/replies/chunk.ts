/**
 * Cuts a text into messages a network takes: at a paragraph, else a line, a sentence, a word, and only
 * then inside a word, never inside a character as people see it. A code block that fits into one
 * message is not cut; one that does not is closed and opened again. The white space at a cut is dropped.
 */
import type { Capabilities } from '#contracts/capabilities.ts';
import type { FormattedText, Span } from '#contracts/formatted-text.ts';

type Cut = {
  /** Where the piece ends, and where the next begins; between them lies white space only. */
  readonly end: number;
  readonly next: number;
};

/** A cut before this share of the limit would make a needlessly short message. */
const LEAST_FILL = 0.25;

/** Cuts into what the network takes; no chunk is empty or only white space. */
export function chunkFormatted(
  formatted: FormattedText,
  limits: Capabilities['text'],
): readonly FormattedText[] {
  const chunks: FormattedText[] = [];
  const { text } = formatted;
  let start = 0;
  while (start < text.length) {
    const cut = findFitting(formatted, start, limits);
    if (text.slice(start, cut.end).trim() !== '') chunks.push(sliceFormatted(formatted, start, cut.end));
    start = cut.next;
  }
  return chunks;
}

/** Room for one character of two units; less cannot be asked for. */
const leastLength = 2;

/** Where the native form is longer than the text, a shorter piece is tried until it fits. */
function findFitting(formatted: FormattedText, start: number, limits: Capabilities['text']): Cut {
  const { maxLength } = limits;
  const end = formatted.text.length;
  for (let length = maxLength; ; ) {
    const cut = end - start <= length ? { end, next: end } : findCut(formatted, start, length);
    const taken = nativeLength(sliceFormatted(formatted, start, cut.end), limits);
    if (taken <= maxLength || length <= leastLength) return cut;
    const share = Math.floor(((cut.end - start) * maxLength) / taken);
    length = Math.max(leastLength, Math.min(length - 1, share));
  }
}

/** How much of a message a text takes. */
export function nativeLength(formatted: FormattedText, limits: Capabilities['text']): number {
  return limits.nativeLength?.(formatted) ?? formatted.text.length;
}

/** A part of a text with the spans that lie in it, clipped. Offsets in UTF-16 units. */
export function sliceFormatted(formatted: FormattedText, start: number, end: number): FormattedText {
  const spans = formatted.spans.flatMap((span): Span[] => {
    const from = Math.max(span.start, start);
    const to = Math.min(span.start + span.length, end);
    return to > from ? [{ ...span, start: from - start, length: to - from }] : [];
  });
  return { text: formatted.text.slice(start, end), spans };
}

function findCut(formatted: FormattedText, start: number, maxLength: number): Cut {
  const limit = start + maxLength;
  const cut = bestCut(formatted.text, start, limit);
  const block = formatted.spans.find(
    (span) => span.kind === 'code-block' && span.start < cut.next && cut.end < span.start + span.length,
  );
  if (!block) return cut;
  const before = formatted.text.slice(start, block.start);
  if (before.trim() !== '' && block.length <= maxLength) {
    return { end: start + before.trimEnd().length, next: block.start };
  }
  return cutInCode(formatted.text, Math.max(start, block.start), start, limit);
}

function bestCut(text: string, start: number, limit: number): Cut {
  const least = start + Math.floor((limit - start) * LEAST_FILL);
  // One more character is looked at: a break right behind the limit is a good place too.
  const window = text.slice(start, limit + 1);
  for (const separator of [
    /\n[ \t]*\n\s*?(?=[ \t]*\S|$)/g,
    /\n+/g,
    /(?<=[.!?…。！？]["'”’)\]*_]{0,3})\s+|(?<=[。！？])/g,
  ]) {
    const cut = lastBreak(window, separator, start);
    if (cut && cut.end >= least) return widen(text, cut);
  }
  const word = lastBreak(window, /\s+/g, start);
  return word ? widen(text, word) : hardCut(text, start, limit);
}

function lastBreak(window: string, separator: RegExp, offset: number): Cut | undefined {
  let found: Cut | undefined;
  for (const match of window.matchAll(separator)) {
    const end = window.slice(0, match.index).trimEnd().length;
    if (end > 0 && end < window.length)
      found = { end: offset + end, next: offset + match.index + match[0].length };
  }
  return found;
}

/** Takes all the white space around a cut, but leaves the next line its indentation. */
function widen(text: string, cut: Cut): Cut {
  const gap = /^\s*/.exec(text.slice(cut.end))?.[0] ?? '';
  const lastBreakAt = gap.lastIndexOf('\n');
  const taken = lastBreakAt === -1 ? gap.length : lastBreakAt + 1;
  return { end: cut.end, next: cut.end + taken };
}

/** In code every space counts: only the one line break at the cut is dropped. */
function cutInCode(text: string, from: number, start: number, limit: number): Cut {
  const lineEnd = text.lastIndexOf('\n', limit);
  if (lineEnd > from && text.slice(start, lineEnd).trim() !== '') return { end: lineEnd, next: lineEnd + 1 };
  return hardCut(text, start, limit);
}

function hardCut(text: string, start: number, limit: number): Cut {
  const end = characterStart(text, start, limit);
  return { end, next: end };
}

/** The last place at or before `limit` that is between two characters as people see them. */
function characterStart(text: string, start: number, limit: number): number {
  const segments = new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(
    text.slice(start, limit + 64),
  );
  const boundary = segments.containing(limit - start)?.index ?? limit - start;
  if (boundary > 0) return start + boundary;
  // One character longer than a message (stacked marks): keep at least surrogate pairs whole.
  const splitsPair =
    /[\udc00-\udfff]/.test(text.charAt(limit)) && /[\ud800-\udbff]/.test(text.charAt(limit - 1));
  return splitsPair && limit - start > 1 ? limit - 1 : limit;
}
