/** Reads and changes single rows by their key column. */
import {
  type AliasedRawBuilder,
  type Compilable,
  type CompiledQuery,
  type Insertable,
  type Kysely,
  type RawBuilder,
  type Selectable,
  type SelectQueryBuilder,
  sql,
  type Updateable,
} from 'kysely';
import type { Tx } from './command.ts';
import { type PreparedQuery, prepared, type QueryParams } from './prepared.ts';
import type { Tables } from './tables.ts';

/** The key column of each table. */
export const keyColumns = {
  accounts: 'key',
  apiCalls: 'key',
  approvals: 'id',
  boots: 'id',
  callApprovals: 'id',
  children: 'id',
  conversations: 'key',
  grants: 'id',
  inbox: 'id',
  laneAliases: 'key',
  lanes: 'key',
  marks: 'inboxId',
  operationCalls: 'key',
  outbox: 'key',
  ownerNotices: 'id',
  pairings: 'id',
  runs: 'id',
  sessions: 'id',
  signIns: 'id',
  taskMessages: 'id',
  tasks: 'id',
  tokens: 'id',
  transcript: 'id',
  trees: 'id',
} as const;

type KeyedTable = keyof typeof keyColumns;
type Row<Table extends KeyedTable> = Selectable<Tables[Table]>;

/** Reads these columns of the row; undefined when no row has that key. */
export function findRow<Table extends KeyedTable, Name extends keyof Row<Table> & string>(
  tx: Tx,
  table: Table,
  key: string | null,
  columns: readonly Name[],
): Promise<Pick<Row<Table>, Name> | undefined> {
  return selectOf<Pick<Row<Table>, Name>>(table, columns).first(tx, { key });
}

/** Does the same for a row that must exist. Throws `internal` if it doesn't. */
export function readRow<Table extends KeyedTable, Name extends keyof Row<Table> & string>(
  tx: Tx,
  table: Table,
  key: string | null,
  columns: readonly Name[],
): Promise<Pick<Row<Table>, Name>> {
  return selectOf<Pick<Row<Table>, Name>>(table, columns).one(tx, { key });
}

/** An amount that is added to a column's value. */
class Plus {
  readonly amount: number;

  constructor(amount: number) {
    this.amount = amount;
  }
}

/** Makes a change add the amount, which may be negative, to the column's value. */
export function plus(amount: number): Plus {
  return new Plus(amount);
}

type Change<Table extends KeyedTable> = {
  readonly [Name in keyof Updateable<Tables[Table]>]: Updateable<Tables[Table]>[Name] | Plus;
};

/** Changes columns of the row, if it exists; undefined ones stay as they are. */
export async function changeRow<Table extends KeyedTable>(
  tx: Tx,
  table: Table,
  key: string | null,
  change: Change<Table>,
): Promise<void> {
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(change)) {
    if (value instanceof Plus) values[`${added}${name}`] = value.amount;
    else if (value !== undefined) values[name] = value;
  }
  await updateOf(table, Object.keys(values)).post(tx, { ...values, key });
}

/** Prefix for the name of a value that is added. */
const added = '+';

type ByKey<Found> = PreparedQuery<{ readonly key: string | null }, Found>;
type Slots = QueryParams<Record<string, unknown> & { readonly key: string | null }>;

/** One query for each table and list of columns; callers use only a few lists. */
const selects = new Map<string, ByKey<unknown>>();
const updates = new Map<string, ByKey<unknown>>();

function selectOf<Found>(table: KeyedTable, columns: readonly string[]): ByKey<Found> {
  const name = `${table} ${columns}`;
  const build = (db: Kysely<Tables>, of: Slots) =>
    // The caller's types have checked that these are columns of the table.
    db
      .selectFrom(table)
      .select(columns as never)
      .where(keyOf(table), '=', of.key);
  const query = selects.get(name) ?? prepared(build);
  selects.set(name, query);
  return query as ByKey<Found>;
}

function updateOf(table: KeyedTable, names: readonly string[]): ByKey<unknown> {
  const name = `${table} ${names}`;
  const build = (db: Kysely<Tables>, of: Slots) => {
    const change = names.map((each) => {
      const column = each.startsWith(added) ? each.slice(added.length) : each;
      return [column, column === each ? of[each] : sql`${sql.ref(column)} + ${of[each]}`];
    });
    const update = db.updateTable(table).set(Object.fromEntries(change) as never);
    return update.where(keyOf(table), '=', of.key);
  };
  const query = updates.get(name) ?? prepared(build);
  updates.set(name, query);
  return query;
}

function keyOf(table: KeyedTable) {
  return sql.ref<string | null>(keyColumns[table]);
}

type InsertRowRow<Table extends keyof Tables> = Insertable<Tables[Table]>;

/** Columns that the database computes on insertion, from the row's other values. */
export type ComputedColumns = Readonly<
  Record<string, (of: QueryParams<Record<string, unknown>>) => RawBuilder<unknown>>
>;

/** Inserts the row; throws when its key is taken. `computed` must be a constant. */
export async function insertRow<Table extends keyof Tables, Name extends keyof InsertRowRow<Table> = never>(
  tx: Tx,
  table: Table,
  row: Omit<InsertRowRow<Table>, Name>,
  computed?: ComputedColumns & Readonly<Record<Name, unknown>>,
): Promise<void> {
  await insertOf(table, row, 'throw', computed).post(tx, row);
}

/** Inserts the row; returns false when its key is taken. `computed` must be a constant. */
export async function insertNewRow<
  Table extends keyof Tables,
  Name extends keyof InsertRowRow<Table> = never,
>(
  tx: Tx,
  table: Table,
  row: Omit<InsertRowRow<Table>, Name>,
  computed?: ComputedColumns & Readonly<Record<Name, unknown>>,
): Promise<boolean> {
  return (await insertOf(table, row, 'skip', computed).run(tx, row)) > 0;
}

/** Inserts the row unless its key is taken. */
export async function ensureRow<Table extends keyof Tables>(
  tx: Tx,
  table: Table,
  row: InsertRowRow<Table>,
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

/**
 * Rows that a transaction locks until its end. All steps lock them in one order; otherwise two steps could wait for
 * each other until PostgreSQL aborts one of them, a second later. The order: the row of all approvals or of all links;
 * accounts by key; lanes by depth and key, where making a lane counts as locking it; classes and trees of sub-agents;
 * questions; conversations; parts. A step that has already locked a conversation waits for no lane.
 */
type Rows<Row> = Compilable<Row> & Pick<SelectQueryBuilder<Tables, keyof Tables, Row>, 'forUpdate'>;

type LockingQuery<Values, Row> = Pick<PreparedQuery<Values, Row>, 'all' | 'first' | 'one'>;

/**
 * Does the same as `prepared`, and also locks the rows until the transaction ends. SQLite's single writer has all rows
 * anyway. PostgreSQL may block on the lock, so `tx.now` is refreshed once it is granted: by an earlier time, a new
 * lease could already have expired when it begins.
 */
export function locking<Values, Row>(
  build: (db: Kysely<Tables>, of: QueryParams<Values>, dialect: Tx['dialect']) => Rows<Row>,
): LockingQuery<Values, Row> {
  const query = prepared<Values, Row>((db, of, dialect) => ({
    compile: () => planOf(dialect, build(db, of, dialect)),
  }));
  return {
    all: async (tx, values) => (await query.all(tx, values)).map((row) => withLockTime(tx, row)),
    first: async (tx, values) => {
      const row = await query.first(tx, values);
      return row && withLockTime(tx, row);
    },
    one: async (tx, values) => withLockTime(tx, await query.one(tx, values)),
  };
}

/** Does the same for a query whose text changes from call to call. */
export async function lockRows<Row>(tx: Tx, query: Rows<Row>): Promise<readonly Row[]> {
  const { rows } = await tx.db.executeQuery(planOf(tx.dialect, query));
  return rows.map((row) => withLockTime(tx, row));
}

/** Reads the clock outside the locking query, since PostgreSQL computes a column before it waits for the row. */
function planOf<Row>(dialect: Tx['dialect'], query: Rows<Row>): CompiledQuery<Row> {
  if (dialect !== 'postgres') return query.compile();
  const plan = query.forUpdate().compile() as CompiledQuery<Row>;
  return {
    ...plan,
    sql: `with "locked" as materialized (${plan.sql}) select "locked".*, (extract(epoch from clock_timestamp()) * 1000)::bigint as "lockedAt" from "locked"`,
  };
}

/** Returns the row as requested, and sets `tx.now` to the time it was locked. */
function withLockTime<Row>(tx: Tx, row: Row): Row {
  if (tx.advanceNow === undefined) return row;
  const { lockedAt, ...asked } = row as Row & { readonly lockedAt: number };
  tx.advanceNow?.(lockedAt);
  return asked as Row;
}

/** A row as other folders read it: absence is undefined. */
export type WithoutNulls<Row> = {
  readonly [Name in keyof Row]: null extends Row[Name] ? Exclude<Row[Name], null> | undefined : Row[Name];
};

/** A row of the query that the function builds. */
export type RowOf<Build extends (...args: never[]) => { execute(): Promise<readonly unknown[]> }> = Awaited<
  ReturnType<ReturnType<Build>['execute']>
>[number];

/** Returns the row with undefined in its empty columns. */
export function withoutNulls<Row extends object>(row: Row): WithoutNulls<Row> {
  const columns = Object.entries(row).map(([name, value]) => [name, value ?? undefined]);
  return Object.fromEntries(columns) as WithoutNulls<Row>;
}

/**
 * Returns operator and operand of "is one of the texts of a JSON list", so that the query text doesn't depend on their
 * number. PostgreSQL assumes few elements in an array and looks them up; for a set it assumes a hundred and scans a
 * table of a few thousand rows.
 */
export function oneOf(
  list: RawBuilder<string>,
  dialect: Tx['dialect'],
): readonly ['=' | 'in', RawBuilder<string>] {
  return dialect === 'postgres'
    ? ['=', sql<string>`any(array(select json_array_elements_text(${list}::json)))`]
    : ['in', sql<string>`(select "value" from json_each(${list}))`];
}

/** Sums a column of whole numbers, under its name: 0 without rows, and a number on both databases. */
export function sumOf<Column extends string>(column: Column): AliasedRawBuilder<number, Column> {
  return sql<number>`cast(coalesce(sum(${sql.ref(column)}), 0) as bigint)`.as(column);
}
