import { expect, it } from 'vitest';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import { endRun } from '../../../src/store/lanes/commit-answer.ts';
import type { BudgetLimit } from '../../../src/store/money/budgets.ts';
import { callIdOf } from '../../../src/store/money/model-calls.ts';
import { reserveCall } from '../../../src/store/money/reserve-call.ts';
import { aLane, aMessage, aWorker, unique } from '../builders.ts';
import { rate } from '../call-builders.ts';
import { describeEachDatabase } from '../each-database.ts';

type Budget = { readonly spent: number; readonly reserved: number };

const readBudget: StoreQuery<{ readonly key: string }, Budget | undefined> = {
  query: 'readBudget',
  run: (tx, { key }) =>
    tx.db.selectFrom('budgets').select(['spent', 'reserved']).where('key', '=', key).executeTakeFirst(),
};

const runs = process.env.PARLEY_LONG === '1' ? 200 : 24;
const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };

describeEachDatabase('a budget that runs race for', (open, { open: openBeside, dialect }) => {
  it('is never exceeded by runs on 3 workers, and holds nothing in the end', {
    timeout: 300_000,
  }, async () => {
    const beside = dialect === 'postgres' ? [await openBeside(), await openBeside()] : [];
    const stores = [open(), ...beside];
    const [gateway, session] = [unique('gateway'), unique('session')];
    const limits: readonly BudgetLimit[] = [
      { scope: 'gateway', key: gateway, limit: 10_000 },
      { scope: 'session', key: session, limit: 12_000 },
    ];
    const worker = aWorker(open());
    const claimed = [];
    for (let n = 0; n < runs; n += 1) {
      const conversation = unique('c');
      await worker.accept(aMessage({ conversation, text: 'hello' }));
      claimed.push(await worker.claimRun(aLane(conversation).key));
    }
    let [left, most] = [0, 0];
    const look = async () => {
      const budget = await open().read(readBudget, { key: gateway });
      most = Math.max(most, (budget?.spent ?? 0) + (budget?.reserved ?? 0));
    };
    await Promise.all(
      claimed.map(async ({ laneKey, epoch, runId, sessionId }, n) => {
        const store = stores[n % stores.length] ?? open();
        const id = callIdOf(epoch, 2);
        const call = { id, runId, sessionId, purpose: 'turn', rate, reserved: 900 } as const;
        const fence = { laneKey, epoch, runId };
        const reserved = await store.write(reserveCall, { ...fence, call, limits, ends: [] });
        await look();
        if (reserved.kind === 'spent') return expect(reserved.refusal.scope).toBe('gateway');
        left += 1;
        await store.write(endRun, {
          ...fence,
          ...{ endReason: 'aborted', detail: undefined, outcome: 'failed', message: undefined },
          ...{ parts: [], preview: undefined, mayKeepLane: false },
          modelCalls: [
            { id, latencyMs: 1, end: { state: 'settled', usage, cost: 300 + (n % 3) * 300, model: 'test' } },
          ],
        });
        await look();
      }),
    );
    for (const store of beside) await store.close();
    expect(most).toBeLessThanOrEqual(10_000);
    expect(left).toBeGreaterThanOrEqual(11);
    const all = await open().read(readBudget, { key: gateway });
    expect(all).toEqual(await open().read(readBudget, { key: session }));
    expect(all?.reserved).toBe(0);
    expect(all?.spent).toBeLessThanOrEqual(10_000);
  });
});
