import { cleanText } from '#channel-kit/clean-text.ts';
import { ParleyError } from '#contracts/errors.ts';

const small = 16 * 1024;

/**
 * Messages for PostgreSQL (https://www.postgresql.org/docs/current/protocol-message-formats.html), gathered for one
 * write to a socket. All values travel as texts. One serves many connections: it is filled and emptied in one go.
 */
export class Outgoing {
  #bytes = Buffer.allocUnsafe(small);
  #end = 0;

  /** Prepares the statement under this name; the empty name is good until its next use. */
  parse(name: string, sql: string): void {
    const start = this.#begin('P');
    this.#text(name);
    this.#text(sql);
    this.#int16(0);
    this.#finish(start);
  }

  bind(name: string, values: readonly unknown[]): void {
    const start = this.#begin('B');
    this.#text('');
    this.#text(name);
    this.#int16(0);
    this.#int16(values.length);
    for (const value of values) this.#value(textOf(value));
    this.#int16(0);
    this.#finish(start);
  }

  /** Asks for the columns of what was bound last. */
  describe(): void {
    const start = this.#begin('D');
    this.#text('P');
    this.#finish(start);
  }

  execute(): void {
    const start = this.#begin('E');
    this.#text('');
    this.#int32(0);
    this.#finish(start);
  }

  /** Ends what PostgreSQL passes over when one of the statements fails, and has it send its answers. */
  sync(): void {
    this.#finish(this.#begin('S'));
  }

  /** All since the last call. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#end);
    this.#end = 0;
    // A long one is kept for nothing that is short.
    if (this.#bytes.length === small) return Buffer.from(taken);
    this.#bytes = Buffer.allocUnsafe(small);
    return taken;
  }

  #begin(kind: string): number {
    this.#reserve(5);
    this.#bytes[this.#end] = kind.charCodeAt(0);
    this.#end += 5;
    return this.#end - 4;
  }

  /** A message's length counts itself. */
  #finish(start: number): void {
    this.#bytes.writeInt32BE(this.#end - start, start);
  }

  #value(value: string | null): void {
    if (value === null) {
      this.#int32(-1);
      return;
    }
    this.#reserve(4 + 3 * value.length);
    const written = this.#bytes.write(value, this.#end + 4);
    this.#bytes.writeInt32BE(written, this.#end);
    this.#end += 4 + written;
  }

  #text(text: string): void {
    this.#reserve(3 * text.length + 1);
    this.#end += this.#bytes.write(text, this.#end);
    this.#bytes[this.#end] = 0;
    this.#end += 1;
  }

  #int16(value: number): void {
    this.#reserve(2);
    this.#end = this.#bytes.writeInt16BE(value, this.#end);
  }

  #int32(value: number): void {
    this.#reserve(4);
    this.#end = this.#bytes.writeInt32BE(value, this.#end);
  }

  /** Room for so many bytes more; a character of a text takes three at most. */
  #reserve(count: number): void {
    const needed = this.#end + count;
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * needed);
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}

function textOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return storable(value);
  if (typeof value === 'object')
    throw new ParleyError('internal', 'A statement’s values are texts and numbers.');
  return String(value);
}

/**
 * PostgreSQL refuses U+0000 in a text, and where it reads JSON also the escapes of U+0000 and of half a pair, which
 * `JSON.stringify` writes. Every value of every statement passes here, so nothing is stored with one, and what is looked
 * up by one isn't found.
 */
function storable(value: string): string {
  const text = value.includes('\0') ? cleanText(value) : value;
  return isJson.test(text) && text.includes('\\u') ? text.replaceAll(escapes, cleanEscape) : text;
}

const isJson = /^[[{]/;
/** Escapes of JSON one after the other, a pair of surrogates as one: a backslash that is escaped itself begins none. */
const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|[^u])/g;

function cleanEscape(written: string): string {
  return /^\\u(?:0000|[dD][89a-fA-F][\da-fA-F]{2})$/.test(written) ? '\ufffd' : written;
}
