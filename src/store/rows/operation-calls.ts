/**
 * Results of operations with an idempotency key. A call's writes are stored with what they return, as `<key>/1` and so
 * on, each in its own transaction; its answer follows as `<key>/answer`. A repetition finds the answer or, if the
 * process was killed before that, runs again while its writes return what they returned.
 */
import { parseJson } from '#channel-kit/parse-json.ts';
import type { StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { changeRow, ensureRow, findRow, insertNewRow } from '../base/row-access.ts';

/** `key` contains the caller. Another `digest` under the same key is another call. */
export type OperationCall = { readonly key: string; readonly digest: string };

/** `reused`: the key belongs to another call. */
export type KeptResult =
  | { readonly kind: 'done'; readonly result: unknown; readonly isRepeated: boolean }
  | { readonly kind: 'reused' };

type KeyedWrite = OperationCall & { readonly step: string; readonly input: unknown };

/** How long a call may be repeated, ms: as long as a program may be down. */
const keptMs = 7 * 86_400_000;
/** How many old rows each new answer removes. */
const removedAtOnce = 20;

/**
 * Returns the step that runs one of `steps` once per key. It doesn't lock anything before the key's row, which only calls
 * with the same key wait for.
 */
export function createKeyedWrite(
  steps: readonly StoreCommand<never, unknown>[],
): StoreCommand<KeyedWrite, KeptResult> {
  const byName = new Map(steps.map((step) => [step.name, step]));
  return {
    name: 'keyedWrite',
    run: async (tx, { step, input, ...call }) => {
      const row = { ...call, result: '', createdAt: tx.now };
      if (!(await insertNewRow(tx, 'operationCalls', row))) return readKept(tx, call);
      // The step was named by its own definition, with this input.
      const result = await byName.get(step)?.run(tx, input as never);
      await changeRow(tx, 'operationCalls', call.key, { result: asText(result) });
      return { kind: 'done', result, isRepeated: false };
    },
  };
}

async function readKept(tx: Tx, { key, digest }: OperationCall): Promise<KeptResult> {
  const row = await findRow(tx, 'operationCalls', key, ['digest', 'result']);
  if (row?.digest !== digest) return { kind: 'reused' };
  return { kind: 'done', result: (parseJson(row.result) as { value?: unknown }).value, isRepeated: true };
}

/** Stores a call's answer, and removes some that nobody asks for any more. Safe to repeat. */
export const keepAnswer: StoreCommand<OperationCall & { readonly answer: unknown }, void> = {
  name: 'keepAnswer',
  run: async (tx, { key, digest, answer }) => {
    await ensureRow(tx, 'operationCalls', {
      ...{ key: `${key}/answer`, digest, createdAt: tx.now },
      result: asText(answer),
    });
    const old = tx.db
      .selectFrom('operationCalls')
      .select('key')
      .where('createdAt', '<', tx.now - keptMs)
      .orderBy('createdAt')
      .limit(removedAtOnce);
    await tx.db.deleteFrom('operationCalls').where('key', 'in', old).execute();
  },
};

/** Returns the answer of an earlier call; undefined if there is none. */
export const readKeptAnswer: StoreQuery<OperationCall, KeptResult | undefined> = {
  query: 'readKeptAnswer',
  run: async (tx, { key, digest }) => {
    const kept = `${key}/answer`;
    const known = await findRow(tx, 'operationCalls', kept, ['key']);
    return known && readKept(tx, { key: kept, digest });
  },
};

/** In an object, since a step may return nothing. */
function asText(value: unknown): string {
  return JSON.stringify({ value });
}
