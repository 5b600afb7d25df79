/**
 * FormattedText → Discord's Markdown. Discord has no entities, so the text is escaped, and a style that its parser
 * (regular expressions, from the outside in) couldn't read back is left out: the text always arrives unchanged, the
 * style where possible.
 */
import { isCode, nestedSpans } from '#channel-kit/nested-spans.ts';
import type { FormattedText, PlainSpanKind, Span } from '#contracts/formatted-text.ts';

const markers: Readonly<Record<Style, string>> = {
  bold: '**',
  italic: '*',
  underline: '__',
  strikethrough: '~~',
  spoiler: '||',
};

/** Keeps markers apart that must not touch; it has no width. */
const separator = '\u200b';

export function toMarkdown(formatted: FormattedText): string {
  const { text } = formatted;
  const spans = nestedSpans(formatted);
  const quotes = spans
    .filter(({ kind }) => kind === 'quote')
    .map((span) => trimmed(text, rangeOf(span), /\n/))
    .filter((range) => isWholeLines(text, range));
  const segments = segmentsOf(text, quotes);
  return segments.map(({ isQuote, ...range }) => writeSegment(text, range, { spans, isQuote })).join('');
}

/** Discord quotes complete lines; part of a line can't be quoted. */
function isWholeLines(text: string, { start, end }: Range): boolean {
  const isLineStart = start === 0 || text[start - 1] === '\n';
  return isLineStart && (end === text.length || text[end] === '\n');
}

type Segment = Range & { readonly isQuote: boolean };

function segmentsOf(text: string, quotes: readonly Range[]): readonly Segment[] {
  const segments: Segment[] = [];
  let at = 0;
  for (const { start, end } of quotes) {
    segments.push({ start: at, end: start, isQuote: false }, { start, end, isQuote: true });
    at = end;
  }
  segments.push({ start: at, end: text.length, isQuote: false });
  return segments.filter(({ start, end }) => end > start);
}

function writeSegment(
  text: string,
  range: Range,
  { spans, isQuote }: { readonly spans: readonly Span[]; readonly isQuote: boolean },
): string {
  const hasLinks = text.includes('](') || spans.some(({ kind }) => kind === 'link');
  const writer = new MarkupWriter(hasLinks);
  writer.write(piecesOf(text, range, spans));
  return isQuote ? writer.out.replace(/^/gm, '> ') : writer.out;
}

class MarkupWriter {
  readonly #hasLinks: boolean;
  out = '';
  /** The length of the output when a marker or code was last closed; the current length if nothing has followed. */
  #closedAt = -1;

  constructor(hasLinks: boolean) {
    this.#hasLinks = hasLinks;
  }

  write(pieces: readonly Piece[], { enders, isFollowed } = outermost): void {
    const settled = withoutBareLinks(pieces);
    for (const [index, piece] of settled.entries()) {
      // The parser reads the content of a style as a separate text, which starts with a new line.
      const isLineStart = index === 0 || this.out.endsWith('\n');
      this.#writePiece(piece, {
        isLineStart,
        enders,
        isFollowed: isFollowed || index < settled.length - 1,
      });
    }
  }

  #writePiece(piece: Piece, place: WriteState): void {
    switch (piece.kind) {
      case 'text':
        this.out += escapeText(piece.text, { ...place, hasLinks: this.#hasLinks });
        return;
      case 'code':
        this.#writeCode(piece.text, place);
        return;
      case 'code-block':
        this.#writeBlock(piece, place);
        return;
      case 'style':
        this.#writeStyle(markers[piece.style], piece.pieces, place);
        return;
      case 'link':
        this.#writeLink(piece, place);
        return;
      default:
        piece satisfies never;
    }
  }

  #writeStyle(marker: string, pieces: readonly Piece[], { enders }: WriteState): void {
    const character = marker.charAt(0);
    if (this.#wouldRunInto(character)) this.out += separator;
    this.out += marker;
    // The parser doesn't count the closing marker as part of the content.
    this.write(pieces, { enders: `${enders}${character}\\`, isFollowed: false });
    // These two end at the first pair of their character, whatever precedes it.
    if ('~|'.includes(character) && this.out.endsWith(character)) this.out += separator;
    this.#close(marker);
  }

  /** Says whether a marker would merge with the one it touches; `~~` isn't closed before `_` either. */
  #wouldRunInto(character: string): boolean {
    if (this.#closedAt !== this.out.length) return false;
    return this.out.endsWith(character) || (character === '_' && this.out.endsWith('~'));
  }

  #close(marker: string): void {
    this.out += marker;
    this.#closedAt = this.out.length;
  }

  #writeCode(text: string, place: WriteState): void {
    if (text.trim() === '') {
      this.#writePiece({ kind: 'text', text }, place);
      return;
    }
    if (this.#wouldRunInto('`')) this.out += separator;
    // Three backticks would start a block, so a fence has at most two.
    const fence = /(?<!`)`(?!`)/.test(text) ? '``' : '`';
    const inside = fence === '``' ? text.replace(/(?<!`)``(?!`)/g, `\`${separator}\``) : text;
    const before = /^ *`/.test(inside) ? ' ' : '';
    const after = /` *$/.test(inside) ? ' ' : '';
    this.out += fence + before + inside + after;
    this.#close(fence);
  }

  #writeBlock({ text, language }: Extract<Piece, { kind: 'code-block' }>, place: WriteState): void {
    const code = text.replace(/^\n+|\n+$/g, '').replaceAll('```', `\`\`${separator}\``);
    if (code.trim() === '') {
      this.#writePiece({ kind: 'text', text }, place);
      return;
    }
    const name = /^[\w+\-.#]+$/.test(language) ? language : '';
    if (this.#wouldRunInto('`')) this.out += separator;
    this.out += `\`\`\`${name}\n${code}\n`;
    this.#close('```');
  }

  #writeLink({ url, pieces }: Link, { enders }: WriteState): void {
    this.out += '[';
    this.write(pieces, { enders: `${enders}[]`, isFollowed: false });
    const target = percentEncode(url, /[()<>\s]/g);
    this.#close(`](${enders === '' ? target : encodeMarkers(target)})`);
  }
}

type Link = Extract<Piece, { kind: 'link' }>;

/** Turns links that Discord wouldn't show into text: the label, then the address. */
function withoutBareLinks(pieces: readonly Piece[]): readonly Piece[] {
  const settled: Piece[] = [];
  for (const piece of pieces.flatMap((one) => (one.kind === 'link' ? settleLink(one) : [one]))) {
    const last = settled.at(-1);
    if (piece.kind !== 'text' || last?.kind !== 'text') settled.push(piece);
    else settled.splice(-1, 1, { kind: 'text', text: last.text + piece.text });
  }
  return settled;
}

function settleLink(link: Link): readonly Piece[] {
  const { url, text, pieces } = link;
  const isWeb = /^https?:\/\//i.test(url) && URL.canParse(url);
  if (text === url || `${text}/` === url || (!isWeb && url.endsWith(`:${text}`)))
    return [{ kind: 'text', text }];
  // Discord doesn't show a link whose label looks like an address, because it could lead elsewhere.
  if (isWeb && !text.includes('://') && hasMatchingBrackets(text)) return [link];
  return [...pieces, { kind: 'text', text: ` (${url})` }];
}

type Surface = { readonly enders: string; readonly isFollowed: boolean };
type WriteState = Surface & { readonly isLineStart: boolean };

const outermost: Surface = { enders: '', isFollowed: false };

function hasMatchingBrackets(text: string): boolean {
  let depth = 0;
  for (const character of text) {
    if (character === '[') depth += 1;
    if (character === ']') depth -= 1;
    if (depth < 0 || depth > 1) return false;
  }
  return depth === 0;
}

/**
 * Nested spans → a tree in which no style starts or ends with white space, and code is inside no style.
 */
type Style = Exclude<PlainSpanKind, 'code' | 'quote'>;

type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | { readonly kind: 'code-block'; readonly text: string; readonly language: string }
  | { readonly kind: 'style'; readonly style: Style; readonly pieces: readonly Piece[] }
  | { readonly kind: 'link'; readonly url: string; readonly text: string; readonly pieces: readonly Piece[] };

type Range = { readonly start: number; readonly end: number };

type MarkedRange = Range & { readonly mark: Span };

/** `spans`: as returned by `nestedSpans`. */
function piecesOf(text: string, range: Range, spans: readonly Span[]): readonly Piece[] {
  return build(
    text,
    range,
    spans.flatMap((span) => markIn(text, range, span)),
  );
}

function rangeOf(span: { readonly start: number; readonly length: number }): Range {
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
function trimmed(text: string, range: Range, blank: RegExp): Range {
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

/**
 * Escapes text so that Discord shows it unchanged. Addresses stay bare, because a backslash would become part of the
 * link. Anything else that its Markdown parser could read as markup gets a backslash, and nothing more does, since
 * each backslash costs one of the 2000 characters.
 */

type EscapeContext = {
  /** The text starts a line, or the content of a style, which the parser reads like the start of a line. */
  readonly isLineStart: boolean;
  /** Characters that would end an enclosing style inside an address. */
  readonly enders: string;
  /** Markup follows immediately; an address would swallow it. */
  readonly isFollowed: boolean;
  /** Masked links are possible in this message. */
  readonly hasLinks: boolean;
};

/** Text that a client turns into a link, according to its own parser. */
const address = /(?:https?|steam):\/\/[^\s<]+[^<.,:;"')\]\s]/g;
const scheme = /(?:https?|steam):\/\//;

function escapeText(text: string, around: EscapeContext): string {
  const openAt = around.isFollowed ? openAddressAt(text) : -1;
  // A line that started before this text isn't blank.
  const line: Line = { prefix: around.isLineStart ? 'blank' : 'words' };
  let out = '';
  let at = 0;
  for (const { 0: url, index } of text.matchAll(address)) {
    // A backslash or a marker right after the address would be read as part of it.
    const isTouched = /^[^\s<]*</.test(text.slice(index + url.length)) || index === openAt;
    const written = writeAddress(url, { isTouched, enders: around.enders });
    if (written === undefined) continue;
    out += escapeRange(text, { start: at, end: index }, { ...around, line }) + written;
    line.prefix = 'words';
    at = index + url.length;
  }
  return out + escapeRange(text, { start: at, end: text.length }, { ...around, line });
}

/** Returns where an address starts that reaches the end, or would if the next characters belonged to it; -1 if none. */
function openAddressAt(text: string): number {
  const last = /[^\s<]*$/.exec(text.slice(lastBreakIn(text) + 1))?.[0] ?? '';
  const at = last.search(scheme);
  return at === -1 ? -1 : text.length - last.length + at;
}

function lastBreakIn(text: string): number {
  let index = text.length - 1;
  while (index >= 0 && !/[\s<]/.test(text.charAt(index))) index -= 1;
  return index;
}

/** Returns undefined if it can't be a link here; its text is then escaped so that it doesn't become one. */
function writeAddress(
  url: string,
  { isTouched, enders }: { readonly isTouched: boolean; readonly enders: string },
): string | undefined {
  if ([...enders].some((character) => url.includes(character))) return undefined;
  if (!isTouched) return url;
  return url.includes('>') ? undefined : `<${url}>`;
}

function encodeMarkers(url: string): string {
  return percentEncode(url, /[*_~|\\`]/g);
}

function percentEncode(url: string, characters: RegExp): string {
  return url.replace(
    characters,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}

/** `line`: the line's state at the start of the range; updated to that at the end. */
function escapeRange(text: string, { start, end }: Range, around: WriteContext): string {
  const { line } = around;
  let out = '';
  for (let index = start; index < end; index += 1) {
    const character = text.charAt(index);
    out += isMarkup(text, index, around) ? `\\${character}` : character;
    if (character === '\n') line.prefix = 'blank';
    else line.prefix = prefixWith(line.prefix, character);
  }
  return out;
}

/** The text before a position in its line: only white space, spaces and a number, or anything else. */
type Line = { prefix: 'blank' | 'spaces-and-number' | 'words' };

type WriteContext = EscapeContext & { readonly line: Line };

function prefixWith(prefix: Line['prefix'], character: string): Line['prefix'] {
  if (prefix === 'blank' && /\s/.test(character)) return 'blank';
  return prefix !== 'words' && /\d/.test(character) ? 'spaces-and-number' : 'words';
}

/** Looks at the adjacent characters too, because most of these are harmless in most places. */
function isMarkup(text: string, index: number, around: WriteContext): boolean {
  const character = text.charAt(index);
  const before = text.charAt(index - 1);
  const after = text.charAt(index + 1);
  switch (character) {
    case '\\':
    case '*':
    case '_':
    case '`':
      return true;
    case '~':
    case '|':
      // Only pairs mean something; at an edge the other half may be one of our markers.
      return before === character || after === character || before === '' || after === '';
    case '<':
      // It could start an address in angle brackets unless a space follows.
      return after !== ' ';
    case ':':
      // The text left here must not look like an address.
      return after === '/' && /(?:https?|steam)$/.test(text.slice(Math.max(0, index - 5), index));
    case '@':
      return text.startsWith('everyone', index + 1) || text.startsWith('here', index + 1);
    case '[':
      return around.hasLinks;
    case '>':
    case '#':
    case '-':
      return around.line.prefix === 'blank';
    case '.':
      return around.line.prefix === 'spaces-and-number' && (after === ' ' || after === '');
    default:
      return false;
  }
}
