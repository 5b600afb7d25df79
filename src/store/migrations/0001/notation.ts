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
  /** The condition of a partial index; base/index-predicates.ts has it in the words of the queries. */
  readonly where?: string;
};

type TableSchema<Table> = {
  readonly columns: { readonly [Column in keyof Table]: ColumnOf<SelectType<Table[Column]>> };
  readonly key: readonly (keyof Table)[];
  /**
   * For short rows that are found by their key alone: they lie in the key's own tree, which in SQLite is a page
   * less to write for each of them.
   */
  readonly isUnderKey?: true;
  /**
   * Its rows are changed in place, by columns that no index has: PostgreSQL fills its pages only so far, %, which
   * leaves room beside a row for its next version. The indexes then stay as they are.
   */
  readonly fill?: number;
  /** By their names, which are unique in the database. */
  readonly indexes?: { readonly [name: string]: Index<keyof Table> };
};

/** Tables with columns, keys and indexes. The compiler holds the columns against `Tables`. */
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
