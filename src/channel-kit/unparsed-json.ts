import { createHash } from 'node:crypto';
import { brace, bracket, closingBrace, closingBracket, colon, comma, JsonMarks } from './json-marks.ts';

/** Length kept of a text that isn't parsed, bytes or UTF-16 units. */
const longestHead = 16_384;
/** Length scanned of a text in memory, UTF-16 units, so that even a very long one takes only milliseconds. */
const longestScan = 1024 * 1024;

type UnparsedText = {
  readonly problem: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly head: string;
  readonly digest: string;
};

/**
 * Represents JSON that is left unparsed because parsing would take too long. It is handled like an unreadable
 * value: `assertSafeJson` throws for it, and it is serialised as the beginning of the text.
 */
export class UnparsedJson {
  /** In English, for the log. */
  readonly problem: string;
  /** Plain fields of the object, as far as it was scanned: ids, but neither lists nor objects. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly #written: string;

  constructor({ problem, fields, head, digest }: UnparsedText) {
    this.problem = problem;
    this.fields = fields;
    this.#written = `${head}… (${problem}; sha256 ${digest})`;
  }

  /** Creates one from a text in memory. `depth`: that of the object whose fields are wanted, from 1. */
  static of(text: string, problem: string, depth = 1): UnparsedJson {
    const read = text.slice(0, longestScan);
    const scan = new FieldScan(depth);
    for (let at = 0; at < read.length; at += 1) scan.take(read.charCodeAt(at));
    const digest = createHash('sha256').update(`${text.length} ${read}`).digest('hex');
    return new UnparsedJson({ problem, fields: scan.fields, head: text.slice(0, longestHead), digest });
  }

  toJSON(): string {
    return this.#written;
  }
}

/** Creates an `UnparsedJson` from a text that arrives in parts. */
export class UnparsedReader {
  readonly #scan = new FieldScan(1);
  readonly #hash = createHash('sha256');
  #head = Buffer.alloc(0);

  add(part: Uint8Array): void {
    this.#hash.update(part);
    if (this.#head.length < longestHead)
      this.#head = Buffer.concat([this.#head, part.subarray(0, longestHead - this.#head.length)]);
    for (let at = 0; at < part.length; at += 1) this.#scan.take(part[at] ?? 0);
  }

  end(problem: string): UnparsedJson {
    const head = this.#head.toString();
    return new UnparsedJson({ problem, fields: this.#scan.fields, head, digest: this.#hash.digest('hex') });
  }
}

const longestToken = 128;
/** No honest object has this many plain fields. */
const maxFields = 256;
const lastPlain = 0x7e;

/** Reads the plain fields of the objects at one depth, without parsing anything else. */
class FieldScan {
  readonly #depth: number;
  readonly #marks = new JsonMarks();
  readonly #fields = new Map<string, unknown>();
  #at = 0;
  #key: string | undefined;
  /** Undefined inside a value that isn't plain. */
  #token: string | undefined = '';

  constructor(depth: number) {
    this.#depth = depth;
  }

  get fields(): Readonly<Record<string, unknown>> {
    return Object.fromEntries(this.#fields);
  }

  /** Takes the next byte or UTF-16 unit. */
  take(code: number): void {
    if (this.#marks.isOutside(code)) this.#structure(code);
    else this.#keep(code);
  }

  #structure(code: number): void {
    const isHere = this.#at === this.#depth;
    switch (code) {
      case bracket:
      case brace:
        this.#at += 1;
        this.#token = this.#at === this.#depth ? '' : undefined;
        return;
      case closingBracket:
      case closingBrace:
        if (isHere) this.#endField();
        this.#at -= 1;
        this.#token = undefined;
        return;
      case comma:
        if (isHere) this.#endField();
        return;
      case colon:
        if (!isHere) return;
        this.#key = this.#token;
        this.#token = '';
        return;
      default:
        if (code > 0x20) this.#keep(code);
    }
  }

  #keep(code: number): void {
    if (this.#at !== this.#depth || this.#token === undefined || this.#fields.size >= maxFields) return;
    const isPlain = code <= lastPlain && this.#token.length < longestToken;
    this.#token = isPlain ? this.#token + String.fromCharCode(code) : undefined;
  }

  #endField(): void {
    const [key, value] = [this.#key, this.#token].map(plainValue);
    if (typeof key === 'string' && value !== undefined) this.#fields.set(key, value);
    this.#key = undefined;
    this.#token = '';
  }
}

function plainValue(token: string | undefined): unknown {
  if (token === undefined || token === '') return undefined;
  try {
    return JSON.parse(token);
  } catch {
    return undefined;
  }
}
