/**
 * Escapes text so that Discord shows it unchanged. Addresses stay bare, because a backslash would become part of the
 * link. Anything else that its Markdown parser could read as markup gets a backslash, and nothing more does, since
 * each backslash costs one of the 2000 characters.
 */

export type EscapeContext = {
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

export function escapeText(text: string, around: EscapeContext): string {
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

export function encodeMarkers(url: string): string {
  return percentEncode(url, /[*_~|\\`]/g);
}

export function percentEncode(url: string, characters: RegExp): string {
  return url.replace(
    characters,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}

type Range = { readonly start: number; readonly end: number };

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
