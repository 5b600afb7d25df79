/** For budget-race.test.ts: opens the store it is given, and races with the others once all are ready. */
import { once } from 'node:events';
import type { StoreSettings } from '../../../src/store/open-configured.ts';
import { openStore } from '../../support/open-store.ts';
import { type Race, race } from './budget-race.ts';

const [settings] = await heard<StoreSettings>();
const store = await openStore(settings);
process.send?.('ready');
const [order] = await heard<Race>();
process.send?.(await race(store, order));
await store.close();
process.disconnect();

/** Awaits the test's next message. */
async function heard<T>(): Promise<[T]> {
  return (await once(process, 'message')) as [T];
}
