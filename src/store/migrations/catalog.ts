/**
 * Reads what a database's own catalogue says about Parley's tables, and compares it with what it should say: one line
 * for each table, column, key, index and constraint, the same on both databases. Tables that aren't Parley's and plain indexes that somebody
 * has added are left alone.
 */
import { createHash } from 'node:crypto';
import type { AnyAdditions, Index, NamedIndex } from '../base/schema-step.ts';

/** Definitions by name: `table inbox`, `column inbox.id`, `key inbox`, `index inboxOpen`. */
export type Catalog = ReadonlyMap<string, string>;

type Rows = readonly Readonly<Record<string, unknown>>[];

/** Runs a query on the database whose catalogue is read. */
export type AskCatalog = (sql: string) => Promise<Rows> | Rows;

/** Returns what the catalogue says after these steps. */
export function expectedCatalog(steps: readonly AnyAdditions[]): Catalog {
  const lines = new Map<string, string>();
  for (const { tables = {}, columns = {} } of steps) {
    for (const [table, { columns: own, key }] of Object.entries(tables)) {
      lines.set(`table ${table}`, 'table');
      lines.set(`key ${table}`, key.join(', '));
      for (const [column, type] of Object.entries(own)) lines.set(`column ${table}.${column}`, type);
    }
    for (const [table, added] of Object.entries(columns))
      for (const [column, type] of Object.entries(added)) lines.set(`column ${table}.${column}`, type);
  }
  for (const index of indexesOf(steps)) lines.set(`index ${index.name}`, describeIndex(index));
  return lines;
}

/** Lists the indexes that these steps create. */
function indexesOf(steps: readonly AnyAdditions[]): readonly NamedIndex[] {
  return steps.flatMap(({ tables = {}, indexes = {} }) =>
    [
      ...Object.entries(tables).map(([table, shape]) => [table, shape.indexes ?? {}] as const),
      ...Object.entries(indexes),
    ].flatMap(([table, own]) => Object.entries(own).map(([name, index]) => ({ name, table, ...index }))),
  );
}

/** One hash of a catalogue, the same on both databases. */
export function fingerprintOf(catalog: Catalog): string {
  const lines = [...catalog].map(([name, definition]) => `${name}: ${definition}`).sort();
  return createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16);
}

/** How a database differs from what its steps have made. */
export type Differences = {
  /** Findings that Parley can't work with, as the ends of sentences. */
  readonly misfits: readonly string[];
  /** Plain indexes that are missing or other than they should be; making them again loses nothing. */
  readonly indexes: readonly NamedIndex[];
};

/** Compares a catalogue with the steps that the database has taken. `mayHaveMore`: a later version has added to it. */
export function compareCatalog(
  found: Catalog,
  { steps, mayHaveMore }: { readonly steps: readonly AnyAdditions[]; readonly mayHaveMore: boolean },
): Differences {
  const expected = expectedCatalog(steps);
  const plain = new Map(
    indexesOf(steps).flatMap((index) => (index.isUnique ? [] : [[index.name, index] as const])),
  );
  const misfits: string[] = [];
  const indexes: NamedIndex[] = [];
  const isTableThere = (name: string) => found.has(`table ${tableOf(name)}`);
  for (const [name, definition] of expected) {
    const actual = found.get(name);
    if (actual === definition) continue;
    const [kind, what = ''] = name.split(' ');
    const index = kind === 'index' ? plain.get(what) : undefined;
    // A missing table is named once, not again for each of its columns.
    const table = index?.table ?? (kind === 'index' ? definition.split(' ')[2] : what);
    if (kind !== 'table' && !isTableThere(table ?? '')) continue;
    if (index) indexes.push(index);
    else
      misfits.push(
        actual === undefined
          ? `the ${name} is missing`
          : `the ${name} is "${actual}" instead of "${definition}"`,
      );
  }
  for (const [name, definition] of mayHaveMore ? [] : found) {
    if (expected.has(name) || (name.startsWith('index ') && definition.startsWith('on '))) continue;
    misfits.push(`the ${name} is unknown`);
  }
  return { misfits, indexes };
}

function tableOf(name: string): string {
  return name.split('.')[0] ?? name;
}

/** Reads the catalogue of the tables that these steps create. */
export async function readCatalog(
  ask: AskCatalog,
  dialect: 'sqlite' | 'postgres',
  steps: readonly AnyAdditions[],
): Promise<Catalog> {
  const tables = new Set(steps.flatMap(({ tables = {} }) => Object.keys(tables)));
  const lines = new Map<string, string>();
  const { columns, indexes, constraints } = queries[dialect];
  for (const { of, name, type, isRequired, standard } of own(await ask(columns), tables)) {
    const end = standard === null ? '' : ` default ${String(standard).replace(/::\w+$/, '')}`;
    lines.set(`table ${of}`, 'table');
    lines.set(`column ${of}.${name}`, `${type}${Number(isRequired) === 1 ? ' not null' : ''}${end}`);
  }
  for (const { of, name, on, isUnique, isKey, where } of own(await ask(indexes), tables)) {
    if (Number(isKey) === 1) lines.set(`key ${of}`, String(on));
    else
      lines.set(
        `index ${name}`,
        describeIndex({ ...index(String(of), on, where), ...(Number(isUnique) === 1 && { isUnique: true }) }),
      );
  }
  for (const { of, name } of own(await ask(constraints), tables))
    lines.set(`constraint ${of}.${name}`, 'constraint');
  return lines;
}

function index(table: string, on: unknown, where: unknown): Index & { readonly table: string } {
  return { table, on: String(on).split(', '), ...(typeof where === 'string' && { where }) };
}

function own(rows: Rows, tables: ReadonlySet<string>): Rows {
  return rows.filter(({ of }) => tables.has(String(of)));
}

function describeIndex({ table, on, isUnique, where }: Index & { readonly table: string }): string {
  const condition = where === undefined ? '' : ` where ${plainCondition(where)}`;
  return `${isUnique ? 'unique ' : ''}on ${table} (${on.join(', ')})${condition}`;
}

/** Writes a condition in one way, whichever database has stored it in its own. */
function plainCondition(where: string): string {
  return where
    .replace(/::\w+(\[\])?/g, '')
    .replace(/=\s*any\s*\(+\s*array\[(.*?)\]\s*\)+/gi, 'in $1')
    .replace(/["()]/g, ' ')
    .replace(/\s*,\s*/g, ', ')
    .replace(/\s+/g, ' ')
    .trim()
    .toLowerCase();
}

const ownTable = `m.type = 'table' and m.name not like 'sqlite\\_%' escape '\\'`;
const visible = `pg_table_is_visible(t.oid) and t.relkind in ('r', 'p') and t.relnamespace <> 'pg_catalog'::regnamespace`;

const queries = {
  sqlite: {
    columns: `select m.name as "of", c.name, lower(c.type) as type, c."notnull" as "isRequired", c.dflt_value as standard
      from sqlite_master m join pragma_table_xinfo(m.name) c where ${ownTable}`,
    indexes: `select m.name as "of", i.name, i."unique" as "isUnique", 0 as "isKey",
        (select group_concat(name, ', ') from (select name from pragma_index_info(i.name) order by seqno)) as "on",
        case when i.partial then substr(s.sql, instr(lower(s.sql), ' where ') + 7) end as "where"
      from sqlite_master m join pragma_index_list(m.name) i left join sqlite_master s on s.type = 'index' and s.name = i.name
      where ${ownTable} and i.origin <> 'pk'
      union all select m.name, '', 1, 1,
        (select group_concat(name, ', ') from (select name from pragma_table_info(m.name) where pk > 0 order by pk)), null
      from sqlite_master m where ${ownTable}`,
    constraints: `select m.name as "of", 'references ' || f."table" as name
      from sqlite_master m join pragma_foreign_key_list(m.name) f where ${ownTable}
      union all select m.name, 'check' from sqlite_master m where ${ownTable} and lower(m.sql) like '% check%(%'`,
  },
  postgres: {
    columns: `select t.relname as "of", a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
        a.attnotnull::int as "isRequired", pg_get_expr(d.adbin, d.adrelid) as standard
      from pg_attribute a join pg_class t on t.oid = a.attrelid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where ${visible} and a.attnum > 0 and not a.attisdropped`,
    indexes: `select t.relname as "of", i.relname as name, x.indisunique::int as "isUnique", x.indisprimary::int as "isKey",
        (select string_agg(coalesce(a.attname, '?'), ', ' order by k.place)
          from unnest(x.indkey) with ordinality k(number, place)
          left join pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.number
          where k.place <= x.indnkeyatts) as "on",
        pg_get_expr(x.indpred, x.indrelid) as "where"
      from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
      where ${visible} and x.indisvalid`,
    constraints: `select t.relname as "of", c.conname as name
      from pg_constraint c join pg_class t on t.oid = c.conrelid where ${visible} and c.contype in ('c', 'f', 'x')`,
  },
} as const;
