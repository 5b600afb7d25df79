/** Runs an operation once per idempotency key, also when its first answer was lost or the process was killed on the way. */
import { createHash } from 'node:crypto';
import type { StoreCommand } from '../store/base/command.ts';
import { keepAnswer, type OperationCall, readKeptAnswer } from '../store/rows/operation-calls.ts';
import type { GatewayDeps, ListedOperation } from './list.ts';
import { type Caller, type OnceDeps, Refusal, type StoreDeps } from './operation.ts';

/** Runs the operation; with a key, once. A refusal isn't kept: its reason may be gone. */
export async function runOperation(
  { name, method, once, run }: ListedOperation,
  {
    deps,
    input,
    caller,
    key,
  }: {
    readonly deps: GatewayDeps;
    readonly input: unknown;
    readonly caller: Caller;
    readonly key: string | undefined;
  },
): Promise<unknown> {
  // The operation's schema has parsed it.
  if (key === undefined || method === 'GET') return run(deps, input as never, caller);
  if (once === 'own') return run(deps, withKey(input, key) as never, caller);
  const call = { key: `${caller.by}/${key}`, digest: digestOf(name, input) };
  const kept = await deps.store.read(readKeptAnswer, call);
  if (kept !== undefined) return kept.kind === 'reused' ? reused() : kept.result;
  const store = keyedStore(deps, call);
  try {
    const answer = await run({ ...deps, store }, input as never, caller);
    if (answer instanceof Refusal) return answer;
    if (once === 'secret') return store.hasRepeated() ? new Refusal('not_possible', secretGone) : answer;
    await deps.store.write(keepAnswer, { ...call, answer });
    return answer;
  } catch (error) {
    if (error instanceof KeyReused) return reused();
    throw error;
  }
}

const secretGone =
  'An earlier call with this key did it, and only its answer had the secret. Revoke what it made, and make another one.';

const reused = () =>
  new Refusal('key_reused', 'This idempotency key belongs to a different call. Use a new key for each call.');

class KeyReused extends Error {}

/** Returns the store for one call: each of its writes happens once. They come in the same order each time. */
function keyedStore({ store, keyedWrite }: OnceDeps, { key, digest }: OperationCall) {
  let writes = 0;
  let repeated = 0;
  const write = async <Input, Output>(step: StoreCommand<Input, Output>, input: Input): Promise<Output> => {
    writes += 1;
    const done = await store.write(keyedWrite, { key: `${key}/${writes}`, digest, step: step.name, input });
    if (done.kind === 'reused') throw new KeyReused();
    if (done.isRepeated) repeated += 1;
    // It was returned by this step.
    return done.result as Output;
  };
  const keyed: StoreDeps['store'] & { hasRepeated(): boolean } = {
    read: (query, asked) => store.read(query, asked),
    write,
    hasRepeated: () => repeated > 0,
  };
  return keyed;
}

/** A key in the input counts; the two can't mean different calls. */
function withKey(input: unknown, key: string): unknown {
  return { key, ...(input as object) };
}

/** The schema has put the members of the input into its own order, so equal inputs have equal texts. */
function digestOf(name: string, input: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify([name, input]))
    .digest('base64url');
}
