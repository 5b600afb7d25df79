import { mkdtemp, rm } from 'node:fs/promises';
import { getCompileCacheDir } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../support/open-store.ts';

it('a store opens and closes again and again in threads that find their code stripped', async () => {
  expect(getCompileCacheDir()).toContain('parley');
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-threads-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  for (let times = 0; times < (process.env.PARLEY_LONG === '1' ? 200 : 5); times += 1) {
    const store = await openStore({ kind: 'sqlite', dataDir });
    await store.close();
  }
});
