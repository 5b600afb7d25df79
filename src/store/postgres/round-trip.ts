import pg from 'pg';
import { serialize } from 'pg-protocol';
import { cleanText } from '#channel-kit/clean-text.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { NamedStatement, RemoteAnswer } from '../base/command.ts';

/** A named statement that a connection has sent; its columns are known once it has been answered. */
type PreparedStatement = { columns: readonly Column[] | undefined };

type Column = { readonly name: string; readonly read: (text: string) => unknown };

type Row = Readonly<Record<string, unknown>>;

/** A statement's answer: its rows and PostgreSQL's command tag, such as `UPDATE 1`. */
export class Answer implements RemoteAnswer {
  readonly rows: readonly Row[];
  readonly done: string;

  constructor(rows: readonly Row[], done: string) {
    this.rows = rows;
    this.done = done;
  }

  get changed(): number {
    return Number(this.done.slice(this.done.lastIndexOf(' ') + 1));
  }
}

/** One statement of a round trip, with its callbacks if it is awaited. */
type AskedStatement = {
  readonly query: NamedStatement;
  readonly parameters: readonly unknown[];
  readonly onAnswer?: (answer: Answer) => void;
  readonly onFailure?: (error: unknown) => void;
};

/** Statements that a connection has prepared, by name, shared by all its round trips. */
export type PreparedStatements = Map<string, PreparedStatement>;

/** Receiver of a round trip's failure and end. */
export type Owner = {
  /** Called when a statement or the connection has failed. Returns the error for all statements still awaited. */
  onFailure(error: unknown): unknown;
  onEnd(): void;
};

/**
 * Statements that are sent in one write and answered together: PostgreSQL sends nothing before the last of them, and
 * skips those after one that fails. A named statement is parsed, and its columns are requested, only the first time.
 * The pool's client calls the methods that begin with `handle`.
 */
export class RoundTrip implements pg.Submittable {
  readonly #prepared: PreparedStatements;
  readonly #owner: Owner;
  readonly #asked: AskedStatement[] = [];
  /** One entry per sent statement; undefined for an unnamed one. */
  readonly #known: (PreparedStatement | undefined)[] = [];
  #answered = 0;
  #columns: readonly Column[] | undefined;
  #rows: Row[] | undefined;

  constructor(prepared: PreparedStatements, owner: Owner) {
    this.#prepared = prepared;
    this.#owner = owner;
  }

  ask(asked: AskedStatement): void {
    this.#asked.push(asked);
  }

  /** Sends the statements. Returns an error, with which the client fails the round trip, if a value can't be sent. */
  submit({ stream }: pg.Connection): unknown {
    let bytes: Buffer;
    try {
      bytes = Buffer.concat([...this.#asked.flatMap((asked) => this.#messagesOf(asked)), serialize.sync()]);
    } catch (error) {
      return error;
    }
    // A closed connection reports its own error.
    if (stream.writable) stream.write(bytes);
    return undefined;
  }

  #messagesOf({ query: { sql, statement = '' }, parameters }: AskedStatement): readonly Buffer[] {
    const before = this.#prepared.get(statement);
    const known = before ?? (statement === '' ? undefined : { columns: undefined });
    if (!before && known) this.#prepared.set(statement, known);
    this.#known.push(known);
    return [
      ...(before ? [] : [serialize.parse({ name: statement, text: sql })]),
      serialize.bind({ statement, values: parameters.map(sentValue) }),
      ...(known?.columns === undefined ? [serialize.describe({ type: 'P' })] : []),
      serialize.execute(),
    ];
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, read: readerOf(dataTypeID) }));
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    this.#columns ??= this.#known[this.#answered]?.columns ?? [];
    const row: Record<string, unknown> = {};
    for (let index = 0; index < fields.length; index++) {
      const column = this.#columns[index];
      const text = fields[index] ?? null;
      if (column) row[column.name] = text === null ? null : column.read(text);
    }
    this.#rows ??= [];
    this.#rows.push(row);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    const known = this.#known[this.#answered];
    if (known) known.columns ??= this.#columns ?? [];
    const rows = this.#rows ?? none;
    this.#rows = undefined;
    this.#columns = undefined;
    const asked = this.#asked[this.#answered];
    this.#answered += 1;
    asked?.onAnswer?.(new Answer(rows, text));
  }

  /** Does nothing, since no statement is empty. */
  handleEmptyQuery(): void {}

  /** Ends the round trip: the next unanswered statement has failed, or the connection has. */
  handleError(error: unknown): void {
    const told = this.#owner.onFailure(error);
    for (const { onFailure } of this.#asked.slice(this.#answered)) onFailure?.(told);
    this.#answered = this.#asked.length;
    this.#owner.onEnd();
  }

  handleReadyForQuery(): void {
    this.#owner.onEnd();
  }
}

const none: readonly Row[] = [];

const int8 = 20;

/** Returns a type's parser. Parley's integers are milliseconds and counters, far below 2^53, so int8 is a number. */
function readerOf(type: number): (text: string) => unknown {
  return type === int8 ? Number : pg.types.getTypeParser(type, 'text');
}

/** Returns a statement's value as sent to PostgreSQL: as text, whatever the column's type. */
function sentValue(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return storable(value);
  if (typeof value === 'object')
    throw new ParleyError('internal', 'A statement’s values must be texts or numbers.');
  return String(value);
}

/**
 * Replaces characters that PostgreSQL rejects: U+0000 in text, and where it parses JSON also the escapes of U+0000 and
 * of lone surrogates, which `JSON.stringify` writes. Every value of every statement passes through here, so no such
 * character is stored, and a lookup by one finds nothing.
 */
function storable(value: string): string {
  const text = value.includes('\0') ? cleanText(value) : value;
  return isJson.test(text) && text.includes('\\u') ? text.replaceAll(escapes, cleanEscape) : text;
}

const isJson = /^[[{]/;
/** Matches JSON escapes one by one, a surrogate pair as one, so that an escaped backslash doesn't begin an escape. */
const escapes = /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|[^u])/g;

function cleanEscape(written: string): string {
  return /^\\u(?:0000|[dD][89a-fA-F][\da-fA-F]{2})$/.test(written) ? '\ufffd' : written;
}
