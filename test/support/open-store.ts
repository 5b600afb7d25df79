import { storeSetup } from '../../src/steps.ts';
import type { Store, StoreSetup } from '../../src/store/base/command.ts';
import { openStore as open, type StoreSettings } from '../../src/store/open-configured.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { lendWriter } from './lend-writer.ts';

/** Opens the store as the gateway does, with English texts. On SQLite its thread may have served another one before. */
export function openStore(
  settings: StoreSettings,
  over: Pick<StoreSetup, 'persistHook'> = {},
): Promise<Store> {
  return open(settings, { ...storeSetup(textsFor('en')), startWriter: lendWriter, ...over });
}
