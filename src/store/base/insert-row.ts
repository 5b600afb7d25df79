import type { Insertable, RawBuilder } from 'kysely';
import type { Tx } from './command.ts';
import { type PreparedQuery, prepared, type QueryParams } from './prepared.ts';
import type { Tables } from './tables.ts';

type Row<Table extends keyof Tables> = Insertable<Tables[Table]>;

/** Columns that the database computes on insertion, from the row's other values. */
export type ComputedColumns = Readonly<
  Record<string, (of: QueryParams<Record<string, unknown>>) => RawBuilder<unknown>>
>;

/** Inserts the row; throws when its key is taken. `computed` must be a constant. */
export async function insertRow<Table extends keyof Tables, Name extends keyof Row<Table> = never>(
  tx: Tx,
  table: Table,
  row: Omit<Row<Table>, Name>,
  computed?: ComputedColumns & Readonly<Record<Name, unknown>>,
): Promise<void> {
  await insertOf(table, row, 'throw', computed).post(tx, row);
}

/** Inserts the row; returns false when its key is taken. `computed` must be a constant. */
export async function insertNewRow<Table extends keyof Tables, Name extends keyof Row<Table> = never>(
  tx: Tx,
  table: Table,
  row: Omit<Row<Table>, Name>,
  computed?: ComputedColumns & Readonly<Record<Name, unknown>>,
): Promise<boolean> {
  return (await insertOf(table, row, 'skip', computed).run(tx, row)) > 0;
}

/** Inserts the row unless its key is taken. */
export async function ensureRow<Table extends keyof Tables>(
  tx: Tx,
  table: Table,
  row: Row<Table>,
): Promise<void> {
  await insertOf(table, row, 'skip').post(tx, row);
}

type OnConflict = 'throw' | 'skip';

type Insert = {
  readonly onConflict: OnConflict;
  readonly columns: readonly string[];
  readonly computed: ComputedColumns | undefined;
  readonly query: PreparedQuery<object, unknown>;
};

/** One query for each table and set of columns; callers use only a few sets. */
const inserts = new Map<keyof Tables, Insert[]>();

function insertOf(
  table: keyof Tables,
  row: object,
  onConflict: OnConflict,
  computed?: ComputedColumns,
): PreparedQuery<object, unknown> {
  const ofTable = inserts.get(table) ?? [];
  inserts.set(table, ofTable);
  const columns = Object.keys(row);
  const known = ofTable.find(
    (one) => one.onConflict === onConflict && one.computed === computed && areSame(one.columns, columns),
  );
  if (known) return known.query;
  const query = prepared((db, of: QueryParams<Record<string, unknown>>) => {
    // `Row` has checked the columns and their types.
    const values = Object.fromEntries([
      ...columns.map((column) => [column, of[column]]),
      ...Object.entries(computed ?? {}).map(([column, compute]) => [column, compute(of)]),
    ]) as never;
    const insert = db.insertInto(table).values(values);
    return onConflict === 'skip' ? insert.onConflict((c) => c.doNothing()) : insert;
  }) as PreparedQuery<object, unknown>;
  ofTable.push({ onConflict, columns, computed, query });
  return query;
}

function areSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((one, index) => one === others[index]);
}
