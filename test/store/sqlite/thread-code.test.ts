import { getCompileCacheDir } from 'node:module';
import { expect, it } from 'vitest';
import { isLong } from '../../support/long-run.ts';
import { openStore } from '../../support/open-store.ts';
import { aFolder } from '../../support/own-folder.ts';

it('a store opens and closes again and again in threads that find their code stripped', async () => {
  expect(getCompileCacheDir()).toContain('parley');
  const dataDir = aFolder();
  for (let times = 0; times < (isLong ? 200 : 5); times += 1) {
    const store = await openStore({ kind: 'sqlite', dataDir });
    await store.close();
  }
});
