/**
 * Cuts Markdown where every block has ended, so that the pieces, parsed one by one, yield the same blocks as the text:
 * before a line that follows an empty one, isn't indented, begins no list item and is in no fence. The parser's garbage
 * then stays young, and its time for hostile text depends on a piece's length instead of the text's. Linear.
 */
const SPACE = /^[ \t]*/;
const FENCE = /^(?:(`{3,})[^`]*|(~{3,}).*)$/;
const ITEM = /^([-+*]|(\d{1,9})[.)])(?:([ \t]+)(.*))?$/;
const RULE = /^([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const HEADING_OR_QUOTE = /^(?:#{1,6}(?:[ \t]|$)|>)/;

/** Shorter pieces aren't cut off, because starting the parser costs something, too. UTF-16 units. */
const minPiece = 2_000;

/**
 * Yields the pieces of a text, without the empty lines between them, which an open fence in a list would otherwise end
 * with. `least`: how long each must be, except the last one.
 */
export function* piecesOf(markdown: string, least = minPiece): Generator<string> {
  const blocks = new BlockReader();
  let start = 0;
  let end = 0;
  for (let at = 0; at < markdown.length && !blocks.isUnsure; ) {
    const next = markdown.indexOf('\n', at) + 1 || markdown.length;
    const line = markdown.slice(at, next);
    if (blocks.read(line) && at - start >= least) {
      yield markdown.slice(start, end);
      start = at;
    }
    at = next;
    if (!blocks.isAfterBlank) end = next;
  }
  yield markdown.slice(start);
}

/** Follows the outermost blocks line by line: fences, and lists, whose items may contain fences. */
class BlockReader {
  /** The marker of the open fence, unless it is in a list. */
  #fence: string | undefined;
  /** Where the content of the open list item begins, in columns; `unsure`: it may also have ended. */
  #item: number | 'unsure' | undefined;
  isAfterBlank = false;
  /** Set once it can't tell whether the lines that follow are in a fence. */
  isUnsure = false;

  /** Says whether everything before this line has ended, and nothing in it continues a list. */
  read(line: string): boolean {
    const [space = ''] = SPACE.exec(line) ?? [];
    const text = line.slice(space.length).replace(/\r?\n$/, '');
    // A return alone ends a line, too.
    if (text.includes('\r')) this.isUnsure = true;
    if (text === '') {
      this.isAfterBlank = true;
      return false;
    }
    const isAfterBlank = this.isAfterBlank;
    this.isAfterBlank = false;
    // A tab reaches at least to the fourth column.
    const indent = space.includes('\t') ? Number.POSITIVE_INFINITY : space.length;
    if (this.#fence !== undefined) {
      if (indent < 4 && isClosing(text, this.#fence)) this.#fence = undefined;
      return false;
    }
    if (indent > 3 || (typeof this.#item === 'number' && indent >= this.#item)) return false;
    return this.#readBlock(text, { indent, isAfterBlank });
  }

  #readBlock(text: string, line: { readonly indent: number; readonly isAfterBlank: boolean }): boolean {
    const { indent, isAfterBlank } = line;
    const fence = FENCE.exec(text);
    const isRule = RULE.test(text);
    const item = isRule ? null : ITEM.exec(text);
    const isFirst = isAfterBlank && indent === 0;
    if (item) {
      this.#item = this.#contentOf(item, line);
      return false;
    }
    if (fence) {
      this.isUnsure = this.#item === 'unsure' && indent > 0;
      this.#fence = fence[1] ?? fence[2];
      this.#item = undefined;
    } else if (isFirst || isRule || HEADING_OR_QUOTE.test(text)) {
      if (indent === 0 || this.#item !== 'unsure') this.#item = undefined;
    } else if (this.#item !== undefined) {
      // It continues a paragraph of the item, or there was none.
      this.#item = 'unsure';
    }
    return isFirst;
  }

  #contentOf(
    [, marker = '', number, space = '', content = '']: RegExpExecArray,
    { indent, isAfterBlank }: { readonly indent: number; readonly isAfterBlank: boolean },
  ): number | 'unsure' {
    const isNested = this.#item === 'unsure' && indent > 0;
    // Only a list that begins with one may follow a paragraph without an empty line.
    const mayBeText =
      number !== undefined && Number(number) !== 1 && !isAfterBlank && typeof this.#item !== 'number';
    if (content.trim() === '' || space.includes('\t') || isNested || mayBeText) return 'unsure';
    return indent + marker.length + (space.length > 4 ? 1 : space.length);
  }
}

function isClosing(text: string, fence: string): boolean {
  return text.startsWith(fence) && /^(?:`+|~+)[ \t]*$/.test(text);
}
