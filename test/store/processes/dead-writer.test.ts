import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { openStore } from '../../support/open-store.ts';

it('refuses every write, and closes, after its writer has died', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'parley-dead-writer-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  const writers: Worker[] = [];
  const keep = (worker: Worker) => writers.push(worker);
  process.on('worker', keep);
  const store = await openStore({ kind: 'sqlite', dataDir });
  process.off('worker', keep);
  expect(writers).toHaveLength(1);

  await writers[0]?.terminate();
  const write = store.write(addProcess, { id: 'boot', folder: 'folder' });
  await expect(write).rejects.toSatisfy((error) => hasCode(error, 'store_unavailable'));
  await store.close();
});
