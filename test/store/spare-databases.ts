/**
 * PostgreSQL databases for suites that need their own, reused one after the other: creating one with its tables takes
 * a fifth of a second of processor time, emptying one a hundredth.
 */
import { addressOf, createDatabase, dropDatabase, query } from '../e2e/own-database.ts';

export type SpareDatabase = {
  readonly url: string;
  /** Keeps it for the next suite, or drops it if its schema has changed. */
  giveBack(): Promise<void>;
};

/** Names the run by the process that started this one, because a test that breaks code starts further runs. */
const prefixOf = (run: number) => `parley_spare_${run}_`;

/** This process's spare databases: the name, and a hash of the schema before its first use. */
const spare: { readonly name: string; readonly schema: string }[] = [];

/** Takes an empty database that nobody else uses meanwhile. `prepare` creates the tables in a new one. */
export async function takeDatabase(
  server: string,
  prepare: (url: string) => Promise<void>,
): Promise<SpareDatabase> {
  const { name, schema } = spare.pop() ?? (await makeSpare(server, prepare));
  return {
    url: addressOf(server, name),
    giveBack: async () => {
      const now = await readSchema(addressOf(server, name), endOthers, empty);
      if (now === schema) spare.push({ name, schema });
      else await dropDatabase(server, name);
    },
  };
}

/** Drops the databases left behind by the processes that this one has started. */
export async function dropSpares(server: string): Promise<void> {
  const own = `starts_with(datname, '${prefixOf(process.pid)}')`;
  for (const { datname } of await query(server, `select datname from pg_database where ${own}`))
    await dropDatabase(server, String(datname));
}

async function makeSpare(server: string, prepare: (url: string) => Promise<void>) {
  const name = `${prefixOf(process.ppid)}${crypto.randomUUID().replaceAll('-', '')}`;
  const url = await createDatabase(server, name);
  await prepare(url);
  return { name, schema: await readSchema(url) };
}

const endOthers = `select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`;

const empty = `do $$ declare own text; begin
  for own in select tablename from pg_tables where schemaname = 'public' and tablename not like 'kysely%' loop
    execute format('delete from %I', own);
  end loop; end $$`;

const describeSchema = `select md5(coalesce(string_agg(line, ',' order by line), '')) as schema from (
  select concat(table_name, column_name, data_type, is_nullable, column_default) as line
    from information_schema.columns where table_schema = 'public'
  union all select indexdef from pg_indexes where schemaname = 'public'
  union all select concat(tgrelid::regclass, tgname) from pg_trigger where not tgisinternal
  union all select proname from pg_proc where pronamespace = 'public'::regnamespace) as own`;

async function readSchema(url: string, ...before: readonly string[]): Promise<string> {
  const [row] = await query(url, ...before, describeSchema);
  return String(row?.schema);
}
