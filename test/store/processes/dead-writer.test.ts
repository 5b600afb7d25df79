import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { storeSetup } from '../../../src/steps.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { aFolder } from '../../support/own-folder.ts';

it('rejects every write, and closes, after its writer thread has died', async () => {
  const file = join(aFolder(), 'parley.db');
  const writers: Worker[] = [];
  const keep = (worker: Worker) => writers.push(worker);
  process.on('worker', keep);
  const store = await openSqliteStore(file, storeSetup(textsFor('en')));
  process.off('worker', keep);
  expect(writers).toHaveLength(1);

  await writers[0]?.terminate();
  const write = store.write(addProcess, { id: 'boot', folder: 'folder' });
  await expect(write).rejects.toSatisfy((error) => hasCode(error, 'store_unavailable'));
  await store.close();
});
