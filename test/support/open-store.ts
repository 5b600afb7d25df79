import { storeSetup } from '../../src/steps.ts';
import type { Store, StoreSetup } from '../../src/store/base/command.ts';
import { openStore as open, type StoreSettings } from '../../src/store/open-configured.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';

/** Opens the store as the gateway does, with English texts. */
export function openStore(
  settings: StoreSettings,
  over: Pick<StoreSetup, 'persistHook'> = {},
): Promise<Store> {
  return open(settings, { ...storeSetup(textsFor('en')), ...over });
}
