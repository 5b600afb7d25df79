import { getCompileCacheDir } from 'node:module';
import { expect, it } from 'vitest';
import { isLong } from '../../support/long-run.ts';
import { openStore } from '../../support/open-store.ts';
import { aFolder } from '../../support/own-folder.ts';

it('opens and closes a store repeatedly in threads that use cached code', async () => {
  expect(getCompileCacheDir()).toContain('parley');
  const dataDir = aFolder();
  for (let times = 0; times < (isLong ? 200 : 5); times += 1) {
    const store = await openStore({ kind: 'sqlite', dataDir });
    await store.close();
  }
});
