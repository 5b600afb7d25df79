import pg from 'pg';
import { serialize } from 'pg-protocol';
import type { NamedStatement, RemoteAnswer } from '../base/command.ts';
import { sentValue } from './sent-value.ts';

/** A statement that a connection has sent under a name; its columns are known from its first answer on. */
type PreparedStatement = { columns: readonly Column[] | undefined };

type Column = { readonly name: string; readonly read: (text: string) => unknown };

type Row = Readonly<Record<string, unknown>>;

/** A statement's answer: its rows, and PostgreSQL's word for what it did, such as `UPDATE 1`. */
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

/** One statement of a round trip, and who hears of it, if anybody waits for it. */
type AskedStatement = {
  readonly query: NamedStatement;
  readonly parameters: readonly unknown[];
  readonly onAnswer?: (answer: Answer) => void;
  readonly onFailure?: (error: unknown) => void;
};

/** Statements that a connection has prepared, by name, for all its round trips. */
export type PreparedStatements = Map<string, PreparedStatement>;

/** Hears of the round trip as a whole. */
export type Owner = {
  /** A statement has failed, or the connection; returns what those are told that wait. */
  onFailure(error: unknown): unknown;
  onEnd(): void;
};

/**
 * Statements that leave in one write and are answered together: PostgreSQL sends nothing before the last of them,
 * and passes over those behind one that fails. A statement with a name is parsed, and asked for its columns, the first
 * time only. The pool's client calls what begins with `handle`.
 */
export class RoundTrip implements pg.Submittable {
  readonly #prepared: PreparedStatements;
  readonly #owner: Owner;
  readonly #asked: AskedStatement[] = [];
  /** One for each statement that was sent; undefined for one without a name. */
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

  /** Returns what the client fails it with: a value that can't be sent. */
  submit({ stream }: pg.Connection): unknown {
    let bytes: Buffer;
    try {
      bytes = Buffer.concat([...this.#asked.flatMap((asked) => this.#messagesOf(asked)), serialize.sync()]);
    } catch (error) {
      return error;
    }
    // One that is gone says so itself.
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

  /** No statement is empty. */
  handleEmptyQuery(): void {}

  /** Ends the round trip: the statement that was to be answered next has failed, or the connection has. */
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

/** Our integers are milliseconds and counters, far below 2^53. */
function readerOf(type: number): (text: string) => unknown {
  return type === int8 ? Number : pg.types.getTypeParser(type, 'text');
}
