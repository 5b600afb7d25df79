/**
 * Reads JSON from a network without holding the event loop, whatever it sends: a text that is longer, deeper or has
 * more values than an honest one isn't parsed. The elements of a list are parsed one by one as they arrive, so that an
 * absurd one neither loses nor delays the others.
 */
import { widestShape } from './json-guard.ts';
import { brace, bracket, closingBrace, closingBracket, comma, JsonMarks } from './json-marks.ts';
import { createYielder } from './take-turns.ts';
import { UnparsedJson, UnparsedReader } from './unparsed-json.ts';

/** A text within these bounds is parsed and mapped in 20 ms at worst: 25,000 different keys of 40 characters. */
export const textBound = { bytes: 1024 * 1024, marks: 25_000 } as const;
/** Bounds of a complete reply: twice the size of a hundred messages of maximum length. */
const replyBound = { bytes: 32 * 1024 * 1024, marks: 1_000_000, elements: 10_000 } as const;

/** Longest message of a socket, bytes; a longer one ends the connection, since it arrives in one piece. */
export const longestFrame = 16 * textBound.bytes;

const sliceBytes = 65_536;

/** Returns why a text isn't parsed on the event loop; undefined for any honest one. */
export function boundProblem(text: string): string | undefined {
  if (text.length > textBound.bytes) return tooLong;
  const marks = new JsonMarks();
  let count = 0;
  for (let at = 0; at < text.length; at += 1) if (marks.isMark(text.charCodeAt(at))) count += 1;
  return count > textBound.marks ? tooMany : undefined;
}

const tooLong = `longer than ${textBound.bytes} bytes`;
const tooMany = `more than ${textBound.marks} values`;
const tooDeep = `nested deeper than ${widestShape.depth} levels`;

/**
 * Parses the body of a reply. If it is a list, or an object that directly contains one, the list is read element by
 * element, and an element over the bound becomes `UnparsedJson`. Throws a SyntaxError for invalid JSON, and a
 * RangeError for anything else over the bound. `isEndlessKept`: a list that doesn't end is cut off at the bound
 * instead, with its last element unparsed.
 */
export async function readJson(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { isEndlessKept = false } = {},
): Promise<unknown> {
  const reply = new ReplyReader();
  const turn = createYielder();
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length && !reply.isEndless; from += sliceBytes) {
      reply.add(chunk.subarray(from, from + sliceBytes));
      await turn();
    }
    // Leaving the loop ends the connection.
    if (reply.isEndless) break;
  }
  if (reply.isEndless && !isEndlessKept) throw tooLarge();
  return reply.end();
}

function tooLarge(): RangeError {
  return Object.assign(new RangeError('the reply is too large'), { code: 'ERR_REPLY_TOO_LARGE' });
}

/** Collects the text around the list and the list's elements. */
class ReplyReader {
  readonly #marks = new JsonMarks();
  readonly #list: unknown[] = [];
  readonly #frame = new TextReader();
  #element = new TextReader();
  #bytes = 0;
  #count = 0;
  #depth = 0;
  /** The depth within the list; undefined before it begins. */
  #listDepth: number | undefined;
  #isInList = false;

  get isEndless(): boolean {
    const { bytes, marks, elements } = replyBound;
    return this.#bytes > bytes || this.#count > marks || this.#list.length > elements;
  }

  add(part: Uint8Array): void {
    let from = 0;
    for (let at = 0; at < part.length; at += 1) {
      const code = part[at] ?? 0;
      if (!this.#marks.isOutside(code)) continue;
      const isOfList = this.#isInList && this.#depth === this.#listDepth;
      switch (code) {
        case bracket:
        case brace:
          if (!this.#opens(code)) continue;
          this.#frame.add(part.subarray(from, at + 1));
          from = at + 1;
          continue;
        case comma:
          this.#counted();
          if (!isOfList) continue;
          this.#endElement(part.subarray(from, at));
          from = at + 1;
          continue;
        case closingBracket:
        case closingBrace:
          this.#depth -= 1;
          if (!isOfList) continue;
          this.#endElement(part.subarray(from, at), { isLast: true });
          this.#isInList = false;
          from = at;
          continue;
        default:
      }
    }
    this.#text.add(part.subarray(from));
    this.#bytes += part.length;
  }

  end(): unknown {
    if (this.#isInList && this.isEndless) {
      this.#list.push(this.#element.unparsed('endless'));
      this.#frame.add(Buffer.from(this.#listDepth === 1 ? ']' : ']}'));
    }
    const value = this.#frame.parse();
    if (value instanceof UnparsedJson) throw tooLarge();
    if (this.#listDepth === 1) return this.#list;
    if (this.#listDepth === undefined || typeof value !== 'object' || value === null) return value;
    const name = Object.entries(value).find(([, inner]) => Array.isArray(inner))?.[0];
    return name === undefined ? value : { ...value, [name]: this.#list };
  }

  get #text(): TextReader {
    return this.#isInList ? this.#element : this.#frame;
  }

  /** Says whether the list begins here. */
  #opens(code: number): boolean {
    this.#counted();
    this.#depth += 1;
    this.#text.deepen(this.#depth);
    this.#isInList ||= code === bracket && this.#listDepth === undefined && this.#depth <= 2;
    if (!this.#isInList || this.#listDepth !== undefined) return false;
    this.#listDepth = this.#depth;
    return true;
  }

  #counted(): void {
    this.#count += 1;
    this.#text.counted();
  }

  #endElement(rest: Uint8Array, { isLast = false } = {}): void {
    this.#element.add(rest);
    const isEmptyList = isLast && this.#list.length === 0 && this.#element.isBlank;
    if (!isEmptyList) this.#list.push(this.#element.parse());
    this.#element = new TextReader();
  }
}

/** One text, which is parsed completely or not at all. */
class TextReader {
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #marks = 0;
  #problem: string | undefined;
  #unparsed: UnparsedReader | undefined;

  counted(): void {
    this.#marks += 1;
    if (this.#marks > textBound.marks) this.#problem ??= tooMany;
  }

  deepen(depth: number): void {
    if (depth > widestShape.depth) this.#problem ??= tooDeep;
  }

  add(part: Uint8Array): void {
    this.#bytes += part.length;
    if (this.#bytes > textBound.bytes) this.#problem ??= tooLong;
    this.#parts.push(part);
    if (this.#problem !== undefined) this.#leave();
  }

  get isBlank(): boolean {
    return this.#unparsed === undefined && Buffer.concat(this.#parts).toString().trim() === '';
  }

  parse(): unknown {
    if (this.#problem !== undefined) return this.unparsed(this.#problem);
    return JSON.parse(Buffer.concat(this.#parts).toString());
  }

  unparsed(problem: string): UnparsedJson {
    return this.#leave().end(this.#problem ?? problem);
  }

  /** From here on the text is scanned instead of kept. */
  #leave(): UnparsedReader {
    this.#unparsed ??= new UnparsedReader();
    for (const part of this.#parts.splice(0)) this.#unparsed.add(part);
    return this.#unparsed;
  }
}
