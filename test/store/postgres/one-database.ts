import { afterAll, beforeAll } from 'vitest';
import type { Store } from '../../../src/store/base/command.ts';
import { makeDatabase } from '../../e2e/own-database.ts';
import { openStore } from '../../support/open-store.ts';

/** Opens a store on a PostgreSQL database that all tests of a `describe` share; it exists once they run. */
export function oneDatabase(): { readonly store?: Store } {
  const close: (() => Promise<void>)[] = [];
  const opened: { store?: Store } = {};
  beforeAll(async () => {
    const { url } = await makeDatabase((end) => close.push(end));
    opened.store = await openStore({ kind: 'postgres', url });
  });
  afterAll(async () => {
    await opened.store?.close();
    for (const end of close) await end();
  });
  return opened;
}
