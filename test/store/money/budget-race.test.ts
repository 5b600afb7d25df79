import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { BudgetLimit } from '../../../src/store/money/budget.ts';
import type { StoreSettings } from '../../../src/store/open-configured.ts';
import { isLong } from '../../support/long-run.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { type Race, type Raced, race, readBudget } from './budget-race.ts';

const runs = isLong ? 200 : 24;

/** One worker of the race. */
type Racer = { race(order: Race): Promise<Raced> };

/** With PARLEY_LONG each worker is a process, otherwise a separate store in this process. */
describeEachDatabase('a budget that concurrent runs share', (open, { open: openBeside, settings }) => {
  const racersHere = async (): Promise<readonly Racer[]> => {
    const stores = [open(), await openBeside(), await openBeside()];
    onTestFinished(async () => void (await Promise.all(stores.slice(1).map((store) => store.close()))));
    return stores.map((store) => ({ race: (order) => race(store, order) }));
  };
  const processes = () => Promise.all([1, 2, 3].map(() => processRacer(settings())));

  it('never exceeds a budget that runs on 3 workers share, and ends without reservations', {
    timeout: 600_000,
  }, async () => {
    const [gateway, session] = [unique('gateway'), unique('session')];
    const limits: readonly BudgetLimit[] = [
      { scope: 'gateway', key: gateway, limit: 10_000 },
      { scope: 'session', key: session, limit: 12_000 },
    ];
    const worker = aWorker(open());
    const names = Array.from({ length: runs }, () => unique('c'));
    await worker.accept(...names.map((conversation) => aMessage({ conversation, text: 'hello' })));
    const claimed = await Promise.all(names.map((name) => worker.claimRun(aLane(name).key, 600_000)));
    const racers = await (isLong ? processes() : racersHere());
    const raced = await Promise.all(
      racers.map((racer, at) => racer.race({ runs: claimed.filter((_, n) => n % 3 === at), limits })),
    );
    expect(Math.max(...raced.map(({ most }) => most))).toBeLessThanOrEqual(10_000);
    expect(raced.reduce((sum, { left }) => sum + left, 0)).toBeGreaterThanOrEqual(11);
    expect(new Set(raced.flatMap(({ refusedBy }) => refusedBy))).toEqual(new Set(['gateway']));
    const all = await open().read(readBudget, { key: gateway });
    expect(all).toEqual(await open().read(readBudget, { key: session }));
    expect(all?.reserved).toBe(0);
    expect(all?.spent).toBeLessThanOrEqual(10_000);
  });
});

async function processRacer(settings: StoreSettings): Promise<Racer> {
  const child = fork(join(import.meta.dirname, 'budget-racer.ts'), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill());
  const told = (order: StoreSettings | Race): Promise<unknown> => {
    const answer = answerOf(child);
    child.send(order);
    return answer;
  };
  await told(settings);
  // Only `race` answers a race order.
  return { race: async (order) => (await told(order)) as Raced };
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const early = new AbortController();
  const { signal } = early;
  const died = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`the worker ended with ${code}`);
  });
  try {
    return await Promise.race([once(child, 'message', { signal }).then(([answer]) => answer), died]);
  } finally {
    early.abort();
  }
}
