import { expect, onTestFinished, test } from 'vitest';
import type { StoreCommand } from '../../src/store/command.ts';
import { lockLane } from '../../src/store/lanes/lane-row.ts';
import { openStore } from '../../src/store/open-store.ts';
import { databaseServer, makeDatabase } from '../e2e/own-database.ts';
import { aLane, aMessage, aWorker, unique } from './builders.ts';

/** A process that stands still in the middle of a transaction. */
function standStillIn(laneKey: string, isLocked: () => void): StoreCommand<undefined, void> {
  return {
    name: 'standStill',
    run: async (tx) => {
      await lockLane(tx, laneKey);
      isLocked();
      await new Promise(() => undefined);
    },
  };
}

// SQLite has no second process that could hold a lane's row.
test.skipIf(databaseServer === undefined)(
  'a process that stands still inside a transaction holds a lane up for seconds, not for ever',
  async () => {
    const database = await makeDatabase(onTestFinished);
    const [still, other] = await Promise.all(
      [1, 2].map(() => openStore({ kind: 'postgres', url: database.url })),
    );
    if (!still || !other) throw new Error('two stores were opened');
    onTestFinished(other.close);
    const worker = aWorker(other);
    const conversation = unique('c');
    await worker.accept(aMessage({ conversation, text: 'hi' }));
    const { key } = aLane(conversation);
    const locked = Promise.withResolvers<void>();
    still.write(standStillIn(key, locked.resolve), undefined).catch(() => undefined);
    await locked.promise;
    expect((await worker.claim(key)).kind).toBe('run');
  },
);
