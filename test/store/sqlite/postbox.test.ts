import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, it, onTestFinished, vi } from 'vitest';
import { storeSetup } from '../../../src/steps.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { textsFor } from '../../../src/texts/chat-texts.ts';
import { aFolder } from '../../support/own-folder.ts';
import { aMessage, aWorker, unique } from '../builders.ts';

it('sends a request to an idle writer at once, and bundles the requests to a busy one', async () => {
  const { accept, sent } = await aCountedStore();
  const first = accept();
  // Promises settle here without the event loop, so the writer’s answer can’t come in between.
  await severalMicrotasks();
  expect(sent()).toBe(1);
  const others = [];
  for (let n = 0; n < 3; n++) {
    others.push(accept());
    await severalMicrotasks();
  }
  expect(sent()).toBe(1);
  expect(await Promise.all([first, ...others])).toMatchObject(
    Array(4).fill({ acceptances: [{ kind: 'accepted' }] }),
  );
  expect(sent()).toBe(2);
});

it('commits pending requests before it closes', async () => {
  const { store, accept, lastSent } = await aCountedStore();
  const first = accept();
  await severalMicrotasks();
  const last = accept();
  const closed = store.close();
  expect(await Promise.all([first, last])).toMatchObject(
    Array(2).fill({ acceptances: [{ kind: 'accepted' }] }),
  );
  await closed;
  // After it, a request would be in time only if the writer happened to be busy.
  expect(lastSent()).toBe('close');
});

it("leaves no writer running if the database can't be opened for reading", async () => {
  const { promise: writer, resolve } = Promise.withResolvers<Worker>();
  process.once('worker', resolve);
  // Such a database has one connection: the writer's.
  await expect(openSqliteStore(':memory:', storeSetup(textsFor('en')))).rejects.toThrow('readonly');
  expect((await writer).threadId).toBe(-1);
});

/** Returns a store whose messages to the writer thread are counted from now on. */
async function aCountedStore() {
  const folder = aFolder();
  const store = await openSqliteStore(join(folder, 'parley.db'), storeSetup(textsFor('en')));
  onTestFinished(() => store.close());
  const worker = aWorker(store);
  await worker.hold();
  const accept = () => worker.accept(aMessage({ conversation: unique('c'), text: 'hi' }));
  await accept();
  const posted = vi.spyOn(Worker.prototype, 'postMessage');
  onTestFinished(() => posted.mockRestore());
  const sent = () => posted.mock.calls.length;
  return { store, accept, sent, lastSent: (): unknown => posted.mock.calls.at(-1)?.[0] };
}

async function severalMicrotasks(): Promise<void> {
  for (let n = 0; n < 20; n++) await undefined;
}
