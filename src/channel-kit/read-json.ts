/** Reads JSON from a network: a text that is too long isn't parsed, and what it was can still be recorded. */
import { createHash } from 'node:crypto';

/**
 * Longest text that is parsed, bytes or UTF-16 units: twice the longest event a network allows (Telegram 0.5 MB, two long
 * texts in Cyrillic; Discord and Signal 0.2 MB). An honest one takes 5 ms, the worst (brackets, short texts, keys) 0.1 s.
 */
export const longestJson = 1024 * 1024;
/**
 * Longest text that is held whole, bytes; a longer one ends its connection. Fits a list of 200 groups of 1,000 people;
 * a Discord server at all its limits takes 2.4 MB, and one that doesn't fit would end every session.
 */
export const longestText = 8 * longestJson;
/** Length kept of a text that isn't parsed. */
const longestHead = 16_384;

/** JSON that is too long to be parsed: thrown as an error, or handed on as a value that can't be read. */
export class OversizedJson extends RangeError {
  readonly #text: string;
  readonly #digest: string;

  constructor(text: string, longest = longestJson) {
    super(`longer than ${longest} bytes`);
    this.#text = text;
    this.#digest = createHash('sha256')
      .update(`${text.length} ${text.slice(0, longest)}`)
      .digest('hex');
  }

  /** As much of it as arrived; no property, so that a log of the error doesn't contain it. */
  get text(): string {
    return this.#text;
  }

  toJSON(): string {
    return `${this.#text.slice(0, longestHead)}… (${this.message}; sha256 ${this.#digest})`;
  }
}

type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Parses the body of a reply. Throws a SyntaxError, or OversizedJson for one that is too long. */
export async function readJson(chunks: Chunks, longest = longestJson): Promise<unknown> {
  return JSON.parse(await readText(chunks, longest));
}

/** Reads the body of a reply. Throws OversizedJson for one that is too long. */
export async function readText(chunks: Chunks, longest: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of chunks) {
    parts.push(part);
    bytes += part.length;
    // Leaving the loop ends the connection.
    if (bytes > longest) throw new OversizedJson(Buffer.concat(parts).toString(), longest);
  }
  return Buffer.concat(parts).toString();
}

/** Finds it in an error or its causes. */
export function oversizedIn(error: unknown): OversizedJson | undefined {
  let at = error;
  for (let depth = 0; depth < 4 && at instanceof Error; depth += 1) {
    if (at instanceof OversizedJson) return at;
    at = 'error' in at ? at.error : at.cause;
  }
  return undefined;
}
