/**
 * Cuts an answer that is still being written into blocks that are sent and stay. A block ends at a paragraph, else a
 * line, a sentence or a word; inside a code fence only at a line, and then the fence is closed and reopened. Nothing
 * is cut off that the final decision (silence.ts) might remove, whatever the turn still takes. Pure.
 */
import { visibleWhileStreaming } from './preview.ts';
import { judgeWritten } from './reply-pipeline.ts';
import { anySource } from './silence.ts';

/** Lengths of a block in UTF-16 units, fences included. A shorter one ends its text, or precedes a pause. */
export type BlockLimits = { readonly minChars: number; readonly maxChars: number };

/** A block of an answer. */
export type Block = {
  /** The text to send: no fence is left open, and one that the block begins in is reopened. */
  readonly markdown: string;
  /** Its piece of the text, as written. The blocks of a text and what follows them make up the text. */
  readonly source: string;
};

/** `growing`: more is coming; `paused`: nothing came for a while; `ended`: the text is complete. */
export type BlockMoment = 'growing' | 'paused' | 'ended';

/** Blocks that were sent of a text; the text may have been discarded and written again since. */
export type SentBlocks = readonly Pick<Block, 'source'>[];

type Fence = { readonly opener: string; readonly marker: string };

type Place = { readonly at: number; readonly fence: Fence | undefined };

/** Cuts the rest of a complete text behind the blocks that were sent of it. */
export function blocksAfter(text: string, sent: SentBlocks, limits: BlockLimits): readonly Block[] {
  return [...cutBlocks(text, placeAfter(text, sent, 'ended') ?? start, limits, 'ended')];
}

/** Says whether any of these blocks shows how the text begins, so that the rest continues it. */
export function isContinued(text: string, sent: SentBlocks): boolean {
  return (placeAfter(text, sent, 'ended') ?? start).at > 0;
}

/** Turns a growing text into blocks. */
export class BlockStream {
  readonly #limits: BlockLimits;
  #written = '';
  #judgedAt = 0;
  #stepBy = 0;
  /** Undefined until it is known whether the text repeats what was sent before. */
  #place: Place | undefined;
  #sent: SentBlocks;

  /** `sent`: blocks of an earlier version of this text. They stay, and what repeats them isn't sent again. */
  constructor(limits: BlockLimits, sent: SentBlocks = []) {
    this.#limits = limits;
    this.#sent = sent;
  }

  /** Every block that was taken, or sent before. */
  get sent(): SentBlocks {
    return this.#sent;
  }

  push(delta: string): void {
    this.#written += delta;
  }

  /** Returns the next blocks. */
  take(moment: BlockMoment): readonly Block[] {
    const { length } = this.#written;
    if (moment === 'growing' && length < this.#judgedAt + this.#stepBy) return [];
    const text = moment === 'ended' ? visibleAtEnd(this.#written) : visibleInAny(this.#written);
    this.#place ??= placeAfter(text, this.#sent, moment);
    const blocks = this.#place ? this.#cut(text, this.#place, moment) : [];
    this.#judgedAt = length;
    const missing = this.#limits.minChars - (text.length - (this.#place?.at ?? 0));
    // Every judgement reads the whole text: over a certain length it has to grow in proportion.
    this.#stepBy = Math.max(1, Math.min(missing, this.#limits.minChars), length >> 5);
    return blocks;
  }

  /** Discards what was written; it is written again. */
  reset(): void {
    this.#written = '';
    this.#judgedAt = 0;
    this.#stepBy = 0;
    this.#place = undefined;
  }

  #cut(text: string, from: Place, moment: BlockMoment): readonly Block[] {
    const blocks = [...cutBlocks(text, from, this.#limits, moment)];
    for (const { source } of blocks) this.#place = advance(text, this.#place ?? from, source.length);
    this.#sent = [...this.#sent, ...blocks];
    return blocks;
  }
}

const start: Place = { at: 0, fence: undefined };

/** Returns the part of an unfinished text that is sent whatever is written next and whatever its turn still takes. */
function visibleInAny(written: string): string {
  const text = visibleWhileStreaming(written, anySource);
  // A word that may be one of silence at the beginning: only the final decision knows.
  return visibleWhileStreaming(written, ['chat']).startsWith(text) ? text : '';
}

function visibleAtEnd(written: string): string {
  const [most, least] = [judgeWritten(written, ['chat']), judgeWritten(written, anySource)];
  if (most.kind === 'silent' || least.kind === 'silent') return '';
  return most.text.startsWith(least.text) ? least.text : '';
}

/**
 * Finds where a text continues behind the blocks that were sent; blocks that the text doesn't contain in this order are
 * passed over. Undefined while the text is too short to tell.
 */
function placeAfter(text: string, sent: SentBlocks, moment: BlockMoment): Place | undefined {
  let at = 0;
  for (const { source } of sent) {
    const there = text.slice(at, at + source.length);
    if (there === source) at += source.length;
    else if (moment !== 'ended' && there.length < source.length && source.startsWith(there)) return undefined;
  }
  return advance(text, start, at);
}

function advance(text: string, { at, fence }: Place, length: number): Place {
  let open = fence;
  for (const line of linesIn(text, at, at + length)) open = fenceAfter(open, line);
  return { at: at + length, fence: open };
}

function* linesIn(text: string, from: number, to: number): Generator<string> {
  for (let at = from; at < to; ) {
    const end = text.indexOf('\n', at);
    const next = end === -1 || end >= to ? to : end + 1;
    yield text.slice(at, next);
    at = next;
  }
}

/** A longer row of ticks is no fence: closing and reopening it would take whole blocks, and leave one character in each. */
const OPENER = /^[ \t]*(?:(`{3,32})(?!`)[^`\n]*|(~{3,32})(?!~)[^\n]*)\n?$/;

/** Returns the fence that is open after a line. */
function fenceAfter(open: Fence | undefined, line: string): Fence | undefined {
  if (open === undefined) {
    const match = OPENER.exec(line);
    const marker = match?.[1] ?? match?.[2];
    return marker === undefined ? undefined : { opener: line.trim(), marker };
  }
  const text = line.trim();
  return text.startsWith(open.marker) && text.replaceAll(open.marker.charAt(0), '') === '' ? undefined : open;
}

function* cutBlocks(text: string, from: Place, limits: BlockLimits, moment: BlockMoment): Generator<Block> {
  for (let place = from; place.at < text.length; ) {
    const end = endOfBlock(text, place, limits, moment);
    if (end === undefined) return;
    const next = advance(text, place, end - place.at);
    const source = text.slice(place.at, end);
    const markdown = markdownOf(source, place, { open: next.fence, text, limits });
    yield { markdown, source };
    place = next;
  }
}

type BlockEnd = { readonly open: Fence | undefined; readonly text: string; readonly limits: BlockLimits };

function markdownOf(source: string, { at, fence }: Place, { open, text, limits }: BlockEnd): string {
  const isLineStart = at === 0 || text.charAt(at - 1) === '\n';
  const body = fence ? source : source.replace(isLineStart ? /^(?:[ \t]*\n)+/ : /^(?:[ \t]*\n)+|^[ \t]+/, '');
  const closed = open ? `${body.trimEnd()}\n${open.marker}` : body.trimEnd();
  return fence ? `${reopened(fence, limits)}\n${closed}` : closed;
}

/** Returns the line that opens a fence again; without its words where they would take much of the block. */
function reopened({ opener, marker }: Fence, { maxChars }: BlockLimits): string {
  return opener.length > maxChars / 8 ? marker : opener;
}

/** From the best place to cut to the worst. */
type Rank = 'paragraph' | 'line' | 'sentence' | 'word';
type Cut = { readonly end: number; readonly rank: Rank; readonly fence: Fence | undefined };

/** Returns where the block that begins at `place` ends; undefined while it has no end. */
function endOfBlock(
  text: string,
  place: Place,
  limits: BlockLimits,
  moment: BlockMoment,
): number | undefined {
  const { at, fence } = place;
  const rest = text.length - at;
  const { minChars, maxChars } = limits;
  const reopening = fence ? reopened(fence, limits).length + 1 : 0;
  if (moment === 'ended' && rest + reopening + closingAt(text, place, text.length) <= maxChars)
    return text.length;
  if (moment === 'growing' && rest < minChars) return undefined;
  const room = maxChars - reopening;
  const cuts = cutsIn(text, place, at + room).filter(
    (cut) => cut.end - at + (cut.fence ? cut.fence.marker.length + 1 : 0) <= room,
  );
  if (moment === 'paused') return lastPause(text, place, cuts, room);
  const isFull = moment === 'ended' || rest >= maxChars;
  const long = cuts.filter(({ end }) => end - at >= minChars);
  const best = bestOf(isFull ? long : long.filter(({ rank, fence }) => rank === 'paragraph' && !fence));
  if (best !== undefined || !isFull) return best;
  return bestOf(cuts) ?? hardEnd(text, at, at + room - closingAt(text, place, at + room));
}

/** Returns how much closing a fence at this end takes. */
function closingAt(text: string, place: Place, end: number): number {
  const { fence } = advance(text, place, end - place.at);
  return fence ? fence.marker.length + 1 : 0;
}

const ranks: readonly Rank[] = ['paragraph', 'line', 'sentence', 'word'];

/** Returns the last of the best cuts. Cuts outside of fences are better than any inside. */
function bestOf(cuts: readonly Cut[]): number | undefined {
  for (const isInside of [false, true])
    for (const rank of ranks) {
      const found = cuts.findLast((cut) => cut.rank === rank && (cut.fence !== undefined) === isInside);
      if (found) return found.end;
    }
  return undefined;
}

/** Returns the last end of a sentence or line before a pause, outside of fences. */
function lastPause(text: string, place: Place, cuts: readonly Cut[], room: number): number | undefined {
  const isWhole = text.length - place.at <= room && SENTENCE_END.test(text.slice(-8));
  if (isWhole && closingAt(text, place, text.length) === 0) return text.length;
  return cuts.findLast(({ rank, fence }) => fence === undefined && rank !== 'word')?.end;
}

const SENTENCE_END = /[.!?…:。！？][)"'”’\]*_]{0,3}$/;
/**
 * Breaks in a line of text, except before what would be markup at the beginning of a line. White space is tried from its
 * beginning only: from each of its characters took time quadratic in its length.
 */
const BREAK = /(?:[。！？]|(?<![ \t])[ \t]+)(?=\S)(?![`~]{3}|[-+*>#|=]|\d{1,9}[.)])/g;
/** Length of the longest markup behind a break: the number of a list's item has at most nine digits. */
const longestMarkup = 10;
/** A line that stays what it is without the line before it: no indented text, and no row of a table. */
const STANDS_ALONE = /^[^\s|]/;

/** Lists the places up to `limit` at which a block may end: behind the white space that follows it. */
function cutsIn(text: string, { at, fence }: Place, limit: number): readonly Cut[] {
  const cuts: Cut[] = [];
  const textAt = at + text.slice(at, limit).search(/\S/);
  let open = fence;
  let lineAt = at;
  let before = '';
  for (const line of linesIn(text, at, text.length)) {
    if (lineAt > limit) break;
    const after = fenceAfter(open, line);
    const cut = textAt >= at && lineAt > textAt ? lineCut(line, { open, after, before }) : undefined;
    if (cut) cuts.push({ ...cut, end: lineAt });
    if (open === undefined && after === undefined && !/^[ \t]*(?:`{2,}|~{2,}|\|)/.test(line))
      cuts.push(...breaksIn(line, lineAt, limit));
    before = line;
    open = after;
    lineAt += line.length;
  }
  return cuts;
}

type LineScene = {
  readonly open: Fence | undefined;
  readonly after: Fence | undefined;
  /** The line before. */
  readonly before: string;
};

/** Returns the cut before a line, if there may be one. */
function lineCut(line: string, { open, after, before }: LineScene): Omit<Cut, 'end'> | undefined {
  // Not before the line that closes the fence, or behind the one that opens it: a block would have an empty one.
  if (open !== undefined)
    return after === undefined || before.trim() === open.opener ? undefined : { rank: 'line', fence: open };
  if (!STANDS_ALONE.test(line)) return undefined;
  return { rank: before.trim() === '' ? 'paragraph' : 'line', fence: undefined };
}

function* breaksIn(line: string, lineAt: number, limit: number): Generator<Cut> {
  for (const match of line.slice(0, limit - lineAt + longestMarkup).matchAll(BREAK)) {
    const end = lineAt + match.index + match[0].length;
    if (end > limit) return;
    const before = line.slice(Math.max(0, match.index - 4), match.index + (match[0].trim() === '' ? 0 : 1));
    yield { end, rank: SENTENCE_END.test(before) ? 'sentence' : 'word', fence: undefined };
  }
}

/** How much text is searched for the beginning of a character as people see it. */
const longestCharacter = 64;

/** Ends a block in the middle of a word, but not inside a character. */
function hardEnd(text: string, at: number, limit: number): number {
  const from = Math.max(at, limit - longestCharacter);
  const characters = new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(
    text.slice(from, limit + longestCharacter),
  );
  const begins = characters.containing(limit - from)?.index ?? 0;
  return begins > 0 ? from + begins : Math.max(limit, at + 1);
}
