import { getCompileCacheDir } from 'node:module';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { storeSetup } from '../../../src/steps.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { isLong } from '../../support/long-run.ts';
import { aFolder } from '../../support/own-folder.ts';

it('opens and closes a store repeatedly in threads that use cached code', async () => {
  expect(getCompileCacheDir()).toContain('parley');
  const file = join(aFolder(), 'parley.db');
  for (let times = 0; times < (isLong ? 200 : 5); times += 1) {
    const store = await openSqliteStore(file, storeSetup(textsFor('en')));
    await store.close();
  }
});
