/** The values that plugins keep. */
import { sql } from 'kysely';
import { parseJson } from '#channel-kit/parse-json.ts';
import {
  pluginStoreLimits,
  type StoreCommit,
  type StoredValue,
  type StoreOp,
} from '#contracts/plugin-store.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';

/** A change whose value is JSON text: it has crossed to the writer thread. */
export type PluginOp = { readonly key: string; readonly text?: string; readonly version?: number };

type PluginOps = { readonly plugin: string; readonly ops: readonly PluginOp[] };

/** Returns the changes in the form in which they are stored. Throws for what isn't JSON or is too large. */
export function pluginOps(ops: readonly StoreOp[]): readonly PluginOp[] {
  const { keyLength, valueBytes, ops: maxOps } = pluginStoreLimits;
  if (ops.length > maxOps)
    throw new RangeError(`${ops.length} changes; at most ${maxOps} fit into one commit`);
  const seen = new Set<string>();
  return ops.map((op) => {
    const { key, version } = op;
    if (typeof key !== 'string' || key === '' || key.length > keyLength || seen.has(key))
      throw new RangeError(`a key has 1 to ${keyLength} characters, and each occurs once in a commit`);
    seen.add(key);
    const expected = version === undefined ? {} : { version };
    if (op.kind === 'delete') return { key, ...expected };
    const text: string | undefined = JSON.stringify(op.value);
    if (text === undefined) throw new TypeError(`the value of ${key} isn't JSON`);
    if (Buffer.byteLength(text) > valueBytes)
      throw new RangeError(`the value of ${key} has more than ${valueBytes} bytes`);
    return { key, text: text.replaceAll('\0', ''), ...expected };
  });
}

/**
 * Makes a plugin's changes as part of a step. They are checked before any is made, under the rows' locks, so that the step
 * may go on after a conflict.
 */
export async function changePluginData(tx: Tx, { plugin, ops }: PluginOps): Promise<StoreCommit> {
  if (ops.length === 0) return { kind: 'committed' };
  // By key, so that two commits never wait for each other.
  const sorted = ops.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  const keys = sorted.map(({ key }) => key);
  await lockPlugin(tx, plugin);
  const rows = await tx.db
    .selectFrom('pluginData')
    .select(['key', 'version', 'bytes'])
    .where('plugin', '=', plugin)
    .where('key', 'in', keys)
    .execute();
  const known = new Map(rows.map((row) => [row.key, row]));
  const stale = sorted.find(
    ({ key, version }) => version !== undefined && version !== (known.get(key)?.version ?? 0),
  );
  if (stale !== undefined) return { kind: 'conflict', key: stale.key };
  const problem = await findOverflow(tx, plugin, sorted, known);
  if (problem !== undefined) return { kind: 'refused', problem };
  for (const { key, text } of sorted) {
    const old = known.get(key);
    if (text === undefined)
      await tx.db.deleteFrom('pluginData').where('plugin', '=', plugin).where('key', '=', key).execute();
    else {
      const row = { value: text, bytes: Buffer.byteLength(text), version: (old?.version ?? 0) + 1 };
      if (old === undefined)
        await tx.db
          .insertInto('pluginData')
          .values({ plugin, key, ...row })
          .execute();
      else
        await tx.db
          .updateTable('pluginData')
          .set(row)
          .where('plugin', '=', plugin)
          .where('key', '=', key)
          .execute();
    }
  }
  return { kind: 'committed' };
}

/** Keeps the plugin's other commits waiting; a single writer, as in SQLite, needs no lock. */
async function lockPlugin(tx: Tx, plugin: string): Promise<void> {
  if (tx.dialect === 'sqlite') return;
  await sql`select pg_advisory_xact_lock(hashtextextended(${`plugin:${plugin}`}, 0))`.execute(tx.db);
}

async function findOverflow(
  tx: Tx,
  plugin: string,
  ops: readonly PluginOp[],
  known: ReadonlyMap<string, { readonly bytes: number }>,
): Promise<string | undefined> {
  const grown = ops.reduce(
    ({ values, bytes }, { key, text }) => {
      const old = known.get(key);
      const size = text === undefined ? 0 : Buffer.byteLength(text);
      return {
        values: values + (text === undefined ? 0 : 1) - (old === undefined ? 0 : 1),
        bytes: bytes + size - (old?.bytes ?? 0),
      };
    },
    { values: 0, bytes: 0 },
  );
  if (grown.values <= 0 && grown.bytes <= 0) return undefined;
  const { values, bytes } = await tx.db
    .selectFrom('pluginData')
    .select(({ fn }) => [fn.countAll<number>().as('values'), fn.sum<number>('bytes').as('bytes')])
    .where('plugin', '=', plugin)
    .executeTakeFirstOrThrow();
  const { values: maxValues, totalBytes } = pluginStoreLimits;
  if (Number(values) + grown.values > maxValues) return `it would have more than ${maxValues} values`;
  const isLarge = Number(bytes ?? 0) + grown.bytes > totalBytes;
  return isLarge ? `its values would have more than ${totalBytes / 1024 / 1024} MB` : undefined;
}

/** Makes a plugin's changes. Safe to repeat only with versions, which then conflict. */
export const commitPluginData: StoreCommand<PluginOps, StoreCommit> = {
  name: 'commitPluginData',
  run: changePluginData,
};

/** Reads one value. */
export const readPluginValue: StoreQuery<
  { readonly plugin: string; readonly key: string },
  StoredValue | undefined
> = {
  query: 'readPluginValue',
  run: async (tx, { plugin, key }) => {
    const row = await tx.db
      .selectFrom('pluginData')
      .select(['key', 'value', 'version'])
      .where('plugin', '=', plugin)
      .where('key', '=', key)
      .executeTakeFirst();
    return row && { ...row, value: parseJson(row.value) };
  },
};

type ListInput = {
  readonly plugin: string;
  readonly prefix: string;
  readonly after: string;
  readonly limit: number;
};

/** Reads the values whose keys begin with the prefix, by key. */
export const listPluginValues: StoreQuery<ListInput, readonly StoredValue[]> = {
  query: 'listPluginValues',
  run: async (tx, { plugin, prefix, after, limit }) => {
    const rows = await tx.db
      .selectFrom('pluginData')
      .select(['key', 'value', 'version'])
      .where('plugin', '=', plugin)
      .where(sql<string>`substr("key", 1, ${[...prefix].length})`, '=', prefix)
      .where('key', '>', after)
      .orderBy('key')
      .limit(limit)
      .execute();
    return rows.map((row) => ({ ...row, value: parseJson(row.value) }));
  },
};
