import { expect, it } from 'vitest';
import { ParleyError } from '../../src/contracts/errors.ts';
import type { Store, StoreCommand } from '../../src/store/base/command.ts';
import { watchStore } from '../../src/store/watch-store.ts';

/** A store whose steps fail with the error they are given, or succeed. */
const store: Store = {
  write: async (_command, input) => {
    if (input instanceof Error) throw input;
    return undefined as never;
  },
  writeAlong: () => undefined,
  read: () => Promise.reject(new Error('nobody reads')),
  broken: new Promise(() => undefined),
  close: async () => undefined,
};
const step: StoreCommand<Error | undefined, void> = { name: 'step', run: async () => undefined };

it('remembers since when and why the database accepts no writes, until it accepts one', async () => {
  let now = 1;
  const watched = watchStore(store, () => now++);
  expect(watched.trouble()).toBeUndefined();
  const away = new ParleyError('store_unavailable', 'PostgreSQL is not reachable.');
  const full = new ParleyError('store_full', 'The disk is full.');
  await expect(watched.write(step, away)).rejects.toBe(away);
  await expect(watched.write(step, full)).rejects.toBe(full);
  expect(watched.trouble()).toEqual({ reason: 'The disk is full.', since: 1 });
  await watched.write(step, undefined);
  expect(watched.trouble()).toBeUndefined();
});

it("doesn't count a rejected step as trouble of the database", async () => {
  const watched = watchStore(store, () => 1);
  for (const refusal of [new ParleyError('stale_epoch', 'another has it'), new Error('a fault of ours')])
    await expect(watched.write(step, refusal)).rejects.toBe(refusal);
  expect(watched.trouble()).toBeUndefined();
});
