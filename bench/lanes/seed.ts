import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from './database.ts';
import { conversationOf } from './message.ts';

/** Few enough at a time that the processes writing to the same file meanwhile don't wait long. */
const atOnce = 5_000;
const patienceMs = 30_000;

/** The number of existing lanes (at least lane 0, the pattern), and of lanes wanted. */
export type Seeding = { readonly from: number; readonly to: number };

/**
 * Makes copies of lane 0, row by row in every table. Lane 0's rows came through the real stages, and the copies
 * look as if theirs had too, but with different ids.
 */
export async function seedLanes(database: Database, rows: Pattern, { from, to }: Seeding): Promise<void> {
  for (let first = from; first < to; first += atOnce) {
    const series = database.numbers(first, Math.min(atOnce, to - first));
    await database.query('begin');
    for (const row of rows) await database.query(`${copyOf(database, row)} from ${series} s`);
    await database.query('commit');
  }
  await database.settle();
}

/** The rows of lane 0, read while it has only its first message. */
export type Pattern = readonly Row[];

type Row = { readonly table: string; readonly values: Readonly<Record<string, unknown>> };

const pattern = conversationOf(0);
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Tables that belong to the process, not to a lane. */
const others: ReadonlySet<string> = new Set(['boots', 'accounts']);

/** Reads every row that names lane 0's conversation, or an id that such a row names. */
export async function readPattern(database: Database): Promise<Pattern> {
  await untilAtRest(database);
  const all: Row[] = [];
  for (const table of await database.tables()) {
    if (others.has(table)) continue;
    for (const values of await database.query(`select * from "${table}"`)) all.push({ table, values });
  }
  const textOf = (row: Row) => JSON.stringify(row.values);
  const own = all.filter((row) => textOf(row).includes(pattern));
  if (own.filter(({ table }) => table === 'lanes').length !== 1)
    throw new Error('the pattern is not one lane');
  const ids = new Set(own.flatMap((row) => textOf(row).match(uuid) ?? []));
  return all.filter((row) => own.includes(row) || (textOf(row).match(uuid) ?? []).some((id) => ids.has(id)));
}

/** Waits for the store: an answer arrives a moment before the store records it, and until then its delivery is held. */
async function untilAtRest(database: Database): Promise<void> {
  for (const until = Date.now() + patienceMs; ; await sleep(50)) {
    const [row] = await database.query(
      `select (select count(*) from outbox where state in ('pending', 'sending'))
         + (select count(*) from lanes where "runId" is not null) as busy`,
    );
    if (Number(row?.busy) === 0) return;
    if (Date.now() > until) throw new Error('lane 0 does not come to rest');
  }
}

function copyOf(database: Database, { table, values }: Row): string {
  const names = Object.keys(values).map((column) => `"${column}"`);
  const copies = Object.values(values).map((value) => copied(database, value));
  return `insert into "${table}" (${names.join(', ')}) select ${copies.join(', ')}`;
}

const tokens = new RegExp(`(${uuid.source}|${pattern})`);

function copied({ kind }: Database, value: unknown): string {
  if (value === null) return 'null';
  if (typeof value !== 'string') return String(value);
  const pieces = value.split(tokens).filter((piece) => piece !== '');
  const sql = pieces.map((piece) => {
    if (piece === pattern) return `cast(s.n + ${pattern} as text)`;
    return piece.match(uuid) ? idFor(kind, piece) : `'${piece.replaceAll("'", "''")}'`;
  });
  return sql.length === 0 ? "''" : sql.join(' || ');
}

/** Returns the id with the lane's number in it; its beginning jumps around like that of a random id. */
function idFor(kind: Database['kind'], id: string): string {
  const hex = (sql: string) =>
    kind === 'SQLite' ? `printf('%08x', ${sql})` : `lpad(to_hex(${sql}), 8, '0')`;
  const jumping = '(cast(s.n as bigint) * 2654435761) % 4294967296';
  return `${hex(jumping)} || '${id.slice(8, 24)}' || ${hex('s.n')} || '${id.slice(32)}'`;
}
