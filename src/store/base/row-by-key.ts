/** Reads and changes single rows by their key column. */
import { type Kysely, type Selectable, sql, type Updateable } from 'kysely';
import type { Tx } from './command.ts';
import { type PreparedQuery, prepared, type QueryParams } from './prepared.ts';
import type { Tables } from './tables.ts';

/** The key column of each table. */
export const keyColumns = {
  accounts: 'key',
  approvals: 'id',
  boots: 'id',
  children: 'id',
  conversations: 'key',
  inbox: 'id',
  laneAliases: 'key',
  lanes: 'key',
  outbox: 'key',
  ownerNotices: 'id',
  pairings: 'id',
  runs: 'id',
  sessions: 'id',
  signIns: 'id',
  transcript: 'id',
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
