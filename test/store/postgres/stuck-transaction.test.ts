import { setTimeout as pause } from 'node:timers/promises';
import { describe, it } from 'vitest';
import type { StoreCommand } from '../../../src/store/base/command.ts';
import { renewLeases } from '../../../src/store/lanes/leases.ts';
import { lockLane } from '../../../src/store/rows/lane.ts';
import { databaseServer, makeDatabase } from '../../e2e/own-database.ts';
import { openStore } from '../../support/open-store.ts';
import { aConversation } from '../a-conversation.ts';
import { aWorker, holder } from '../builders.ts';

/** Simulates a process that hangs in the middle of a transaction. */
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
describe.skipIf(databaseServer === undefined)(
  'a process that hangs inside a transaction',
  {
    concurrent: true,
  },
  () => {
    it('frees a lane within seconds from a process that hangs inside a transaction', async ({
      onTestFinished,
      expect,
    }) => {
      const { worker, key, standStill } = await aLaneAndTwoStores(onTestFinished);
      await standStill();
      expect((await worker.claim(key)).kind).toBe('run');
    });

    it('gives a lane freed from a hanging process to exactly one of the waiting ones', async ({
      onTestFinished,
      expect,
    }) => {
      const { worker, other, key, standStill } = await aLaneAndTwoStores(onTestFinished);
      await standStill();
      const leaseMs = 500;
      const early = worker.claim(key, leaseMs);
      // Timed from its own start, the early claim's lease would be over when the late one gets the row.
      await pause(2 * leaseMs);
      const late = aWorker(other, 'boot-2').claim(key, leaseMs);
      expect((await Promise.all([early, late])).map(({ kind }) => kind).sort()).toEqual(['busy', 'run']);
    });

    it('takes nothing from a lease whose renewal had to wait', async ({ onTestFinished, expect }) => {
      const { worker, other, key, standStill } = await aLaneAndTwoStores(onTestFinished);
      const run = await worker.claimRun(key);
      await standStill();
      // Shorter than its wait.
      await other.write(renewLeases, { holder, leaseMs: 2_000, runs: [run] });
      expect((await aWorker(other, 'boot-2').claim(key)).kind).toBe('busy');
    });
  },
);

/** Returns two processes on one database, and a lane with a waiting message. */
async function aLaneAndTwoStores(atEnd: (end: () => Promise<void>) => void) {
  const database = await makeDatabase(atEnd);
  const [still, other] = await Promise.all(
    [1, 2].map(() => openStore({ kind: 'postgres', url: database.url })),
  );
  if (!still || !other) throw new Error('two stores were opened');
  atEnd(other.close);
  const { laneKey: key, worker, say } = aConversation(other);
  await say();
  const standStill = async () => {
    const locked = Promise.withResolvers<void>();
    still.write(standStillIn(key, locked.resolve), undefined).catch(() => undefined);
    await locked.promise;
  };
  return { worker, other, key, standStill };
}
