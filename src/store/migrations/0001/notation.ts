import { type Kysely, type SelectType, SqliteAdapter, sql } from 'kysely';
import type { Tables } from '../../base/tables.ts';

export const text = 'text not null';
export const textOrNull = 'text';
export const integer = 'integer not null';
export const bigint = 'bigint not null';
export const bigintOrNull = 'bigint';

/** The SQL type of a column, as far as its type in `Tables` decides it. */
type ColumnOf<Value> = null extends Value
  ? NonNullable<Value> extends number
    ? typeof bigintOrNull
    : typeof textOrNull
  : Value extends number
    ? `${typeof integer | typeof bigint}${Default}`
    : `${typeof text}${Default}`;

type Default = '' | ` default ${string}`;

type Index<Column> = {
  readonly on: readonly Column[];
  readonly isUnique?: true;
  /** The condition of a partial index; base/index-predicates.ts has it in the form that queries use. */
  readonly where?: string;
};

type TableSchema<Table> = {
  readonly columns: { readonly [Column in keyof Table]: ColumnOf<SelectType<Table[Column]>> };
  readonly key: readonly (keyof Table)[];
  /**
   * For short rows that are found by their key alone: they are stored in the key's own tree, which saves SQLite one
   * page write per row.
   */
  readonly isUnderKey?: true;
  /**
   * How far PostgreSQL fills the table's pages, %. For rows that are updated only in unindexed columns: the remaining
   * space takes a row's next version, so the indexes stay unchanged.
   */
  readonly fill?: number;
  /** Indexes by name; the names are unique in the database. */
  readonly indexes?: { readonly [name: string]: Index<keyof Table> };
};

/** Tables with columns, keys and indexes. The compiler checks the columns against `Tables`. */
export type SchemaOf<Names extends keyof Tables> = { readonly [Name in Names]: TableSchema<Tables[Name]> };

/** Creates the tables and their indexes. */
export async function createTables(db: Kysely<unknown>, schema: SchemaOf<keyof Tables>): Promise<void> {
  const isSqlite = db.getExecutor().adapter instanceof SqliteAdapter;
  for (const [table, { columns, key, isUnderKey, fill = 100, indexes = {} }] of Object.entries(schema)) {
    const types = Object.entries(columns).map(([column, type]) => `"${column}" ${type}`);
    const end = isSqlite ? (isUnderKey ? ' without rowid' : '') : ` with (fillfactor = ${fill})`;
    await run(db, `create table "${table}" (${types.join(', ')}, primary key (${list(key)}))${end}`);
    for (const [name, { on, isUnique, where }] of Object.entries<Index<string>>(indexes)) {
      const kind = isUnique ? 'unique index' : 'index';
      const condition = where === undefined ? '' : ` where ${where}`;
      await run(db, `create ${kind} "${name}" on "${table}" (${list(on)})${condition}`);
    }
  }
}

async function run(db: Kysely<unknown>, statement: string): Promise<void> {
  await sql.raw(statement).execute(db);
}

function list(columns: readonly string[]): string {
  return columns.map((column) => `"${column}"`).join(', ');
}
