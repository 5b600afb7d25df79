import { storeSetup } from '../../src/steps.ts';
import type { Store } from '../../src/store/base/command.ts';
import { openStore as open, type StoreSettings } from '../../src/store/open-store.ts';
import { noticesFor } from '../../src/texts/notices.ts';

/** The store as the gateway opens it, with English texts. */
export function openStore(settings: StoreSettings): Promise<Store> {
  return open(settings, storeSetup(noticesFor('en')));
}
