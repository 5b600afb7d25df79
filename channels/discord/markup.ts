/**
 * FormattedText → Discord's Markdown. Discord has no entities, so the text is escaped, and a style that its parser
 * (regular expressions, from the outside in) couldn't read back is left out: the text always arrives unchanged, the
 * style where possible.
 */
import { nestedSpans } from '#channel-kit/nested-spans.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import type { Span } from '#contracts/span.ts';
import { encodeMarkers, escapeText, percentEncode } from './escape.ts';
import { type Piece, piecesOf, type Range, rangeOf, type Style, trimmed } from './markup-tree.ts';

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

type WriteOptions = { readonly spans: readonly Span[]; readonly isQuote: boolean };

function writeSegment(text: string, range: Range, { spans, isQuote }: WriteOptions): string {
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
