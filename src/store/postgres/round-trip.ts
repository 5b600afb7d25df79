import pg from 'pg';
import type { NamedStatement } from '../base/command.ts';
import type { Outgoing } from './outgoing.ts';

/** A statement that a connection has sent under a name; its columns are known from its first answer on. */
type PreparedStatement = { columns: readonly Column[] | undefined };

type Column = { readonly name: string; readonly read: (text: string) => unknown };

/** A statement's answer: its rows, how many it has changed, and PostgreSQL's word for what it did, such as `UPDATE`. */
export type Answer = { readonly rows: readonly Row[]; readonly changed: number; readonly done: string };

type Row = Readonly<Record<string, unknown>>;

/** One statement of a round trip, and who hears of it. */
type AskedStatement = {
  readonly query: NamedStatement;
  readonly parameters: readonly unknown[];
  onAnswer(answer: Answer): void;
  /** Its own failure, or that of one before it. */
  onFailure(error: unknown): void;
};

/** A connection's memory, for all its round trips. */
export type Memory = { readonly outgoing: Outgoing; readonly prepared: Map<string, PreparedStatement> };

/**
 * Statements that leave in one write and are answered together: PostgreSQL sends nothing before the last of them,
 * and passes over those behind one that fails. A statement with a name is parsed, and asked for its columns, the first
 * time only. The pool's client calls what begins with `handle`.
 */
export class RoundTrip implements pg.Submittable {
  readonly #memory: Memory;
  readonly #asked: AskedStatement[] = [];
  readonly #onEnd: () => void;
  #answered = 0;
  #columns: readonly Column[] | undefined;
  #rows: Row[] = [];

  constructor(memory: Memory, onEnd: () => void) {
    this.#memory = memory;
    this.#onEnd = onEnd;
  }

  ask(asked: AskedStatement): void {
    this.#asked.push(asked);
  }

  submit({ stream }: pg.Connection): void {
    const { outgoing, prepared } = this.#memory;
    for (const { query, parameters } of this.#asked) {
      const { sql, statement = '' } = query;
      const known = prepared.get(statement);
      if (!known) outgoing.parse(statement, sql);
      if (!known && statement !== '') prepared.set(statement, { columns: undefined });
      outgoing.bind(statement, parameters);
      if (known?.columns === undefined) outgoing.describe();
      outgoing.execute();
    }
    outgoing.sync();
    const bytes = outgoing.take();
    // One that is gone says so itself.
    if (stream.writable) stream.write(bytes);
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, read: readerOf(dataTypeID) }));
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    this.#columns ??= this.#known()?.columns ?? [];
    const row: Record<string, unknown> = {};
    for (let index = 0; index < fields.length; index++) {
      const column = this.#columns[index];
      const text = fields[index] ?? null;
      if (column) row[column.name] = text === null ? null : column.read(text);
    }
    this.#rows.push(row);
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    const known = this.#known();
    if (known) known.columns ??= this.#columns ?? [];
    const rows = this.#rows;
    this.#rows = [];
    this.#columns = undefined;
    const asked = this.#asked[this.#answered];
    this.#answered += 1;
    const [done = ''] = text.split(' ', 1);
    asked?.onAnswer({ rows, changed: Number(text.slice(text.lastIndexOf(' ') + 1)), done });
  }

  /** No statement is empty. */
  handleEmptyQuery(): void {}

  /** Ends the round trip: the statement that was to be answered next has failed, or the connection has. */
  handleError(error: unknown): void {
    for (const { onFailure } of this.#asked.slice(this.#answered)) onFailure(error);
    this.#answered = this.#asked.length;
    this.#onEnd();
  }

  handleReadyForQuery(): void {
    this.#onEnd();
  }

  #known(): PreparedStatement | undefined {
    return this.#memory.prepared.get(this.#asked[this.#answered]?.query.statement ?? '');
  }
}

const int8 = 20;

/** Our integers are milliseconds and counters, far below 2^53. */
function readerOf(type: number): (text: string) => unknown {
  return type === int8 ? Number : pg.types.getTypeParser(type, 'text');
}
