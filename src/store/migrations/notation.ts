/** The schema as data: each step only adds, and what a database must contain is computed from the same data. */
import type { SelectType } from 'kysely';
import type {
  Alteration,
  AnyTable,
  Index,
  NamedIndex,
  SchemaStep,
  SchemaSteps,
  TableShape,
} from '../base/schema-step.ts';
import type { Tables } from '../base/tables.ts';

/** A text that every row has. */
export const text = 'text not null';
/** A text that a row may lack. */
export const textOrNull = 'text';
/** A small number that every row has. */
export const integer = 'integer not null';
/** A number, such as a time in ms, that every row has. */
export const bigint = 'bigint not null';
/** A number that a row may lack. */
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

/** A column added to a table that has rows, which the version before writes without it. */
type AddedColumnOf<Value> = null extends Value
  ? ColumnOf<Value>
  : Extract<ColumnOf<Value>, `${string} default ${string}`>;

type TableSchema<Table> = TableShape<
  { readonly [Column in keyof Table]?: ColumnOf<SelectType<Table[Column]>> },
  keyof Table
>;

/** New tables with columns, keys and indexes. The compiler checks the columns against `Tables`. */
export type SchemaOf<Names extends keyof Tables> = { readonly [Name in Names]: TableSchema<Tables[Name]> };

/** Additions of one of this version's steps. */
export type Additions = {
  readonly tables?: Partial<SchemaOf<keyof Tables>>;
  readonly columns?: {
    readonly [Name in keyof Tables]?: {
      readonly [Column in keyof Tables[Name]]?: AddedColumnOf<SelectType<Tables[Name][Column]>>;
    };
  };
  /** New indexes of tables of earlier steps, by table. */
  readonly indexes?: {
    readonly [Name in keyof Tables]?: { readonly [name: string]: Index<keyof Tables[Name]> };
  };
};

/** The columns that one step declares of a table. */
type ColumnsOf<Adds, Name extends PropertyKey> =
  | (Adds extends { tables: { [N in Name]: { columns: infer Columns } } } ? keyof Columns : never)
  | (Adds extends { columns: { [N in Name]: infer Columns } } ? keyof Columns : never);

/** Columns of `Tables` that no step declares. */
type MissingColumn<Steps extends { [name: string]: { adds: unknown } }> = {
  [Name in keyof Tables]: Exclude<
    keyof Tables[Name],
    { [Step in keyof Steps]: ColumnsOf<Steps[Step]['adds'], Name> }[keyof Steps]
  > extends infer Missing
    ? [Missing] extends [never]
      ? never
      : `${Name}.${Missing & string}`
    : never;
}[keyof Tables];

/** Returns this version's steps. The compiler checks that together they make every column of `Tables`. */
export function declareSteps<const Steps extends { [name: string]: SchemaStep & { adds: Additions } }>(
  steps: [MissingColumn<Steps>] extends [never] ? Steps : { readonly missingColumn: MissingColumn<Steps> },
): SchemaSteps {
  // The condition above decides only what the compiler says about an incomplete list.
  return steps as unknown as Steps;
}

/** Makes what a step adds. */
export async function applyStep(on: Alteration, { adds, fill }: SchemaStep): Promise<void> {
  const { tables = {}, columns = {}, indexes = {} } = adds;
  for (const [table, shape] of Object.entries(tables)) {
    await createTable(on, table, shape);
    await createIndexes(on, table, shape.indexes);
  }
  for (const [table, added] of Object.entries(columns))
    for (const [column, type] of Object.entries(added))
      await on.run(`alter table "${table}" add column "${column}" ${type}`);
  for (const [table, added] of Object.entries(indexes)) await createIndexes(on, table, added);
  await fill?.(on);
}

async function createTable(
  on: Alteration,
  table: string,
  { columns, key, isUnderKey, fill = 100 }: AnyTable,
): Promise<void> {
  const types = Object.entries(columns).map(([column, type]) => `"${column}" ${type}`);
  const end = on.dialect === 'sqlite' ? (isUnderKey ? ' without rowid' : '') : ` with (fillfactor = ${fill})`;
  await on.run(`create table "${table}" (${types.join(', ')}, primary key (${list(key)}))${end}`);
}

async function createIndexes(
  on: Alteration,
  table: string,
  indexes: AnyTable['indexes'] = {},
): Promise<void> {
  for (const [name, index] of Object.entries(indexes)) await createIndex(on, { name, table, ...index });
}

/** Replaces an index whose content the rows decide, which loses nothing. */
export async function remakeIndex(on: Alteration, index: NamedIndex): Promise<void> {
  await on.run(`drop index if exists "${index.name}"`);
  await createIndex(on, index);
}

async function createIndex(
  on: Alteration,
  { name, table, on: columns, isUnique, where }: NamedIndex,
): Promise<void> {
  const kind = isUnique ? 'unique index' : 'index';
  const condition = where === undefined ? '' : ` where ${where}`;
  await on.run(`create ${kind} "${name}" on "${table}" (${list(columns)})${condition}`);
}

function list(columns: readonly string[]): string {
  return columns.map((column) => `"${column}"`).join(', ');
}
