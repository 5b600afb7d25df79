import { describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { createActiveRuns, type StopReason } from '../../src/runs/active-runs.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { aConversation } from '../store/a-conversation.ts';
import { type aWorker, holder } from '../store/builders.ts';
import { openOwnStore } from '../support/own-store.ts';
import { silentLog } from '../support/silent-log.ts';

describe('the runs of a process', () => {
  const store = openOwnStore();

  const activeRuns = () =>
    createActiveRuns({
      store: store(),
      holder,
      clock: systemClock,
      log: silentLog,
      leaseMs: 10_000,
      renewMs: 10,
    });

  const entry = ({ laneKey, epoch, runId }: ClaimedRun) => {
    const stops: StopReason[] = [];
    return { laneKey, epoch, runId, stops, stop: (reason: StopReason) => stops.push(reason) };
  };

  const leaseOf = (laneKey: string) =>
    store().read(
      {
        query: 'leaseOf',
        run: async (tx, key: string) =>
          tx.db.selectFrom('lanes').select('leaseUntil').where('key', '=', key).executeTakeFirstOrThrow(),
      },
      laneKey,
    );

  it('renews the newer attempt of a run and stops only the earlier one', async () => {
    const { laneKey: key, worker, say, claimRun } = aConversation(store());
    await say();
    const first = entry(await claimRun(1));
    const second = entry(await claimAfterLapse(worker, key));
    const active = activeRuns();
    active.add(first);
    active.add(second);
    active.remove(first);
    const before = await leaseOf(key);
    await vi.waitFor(async () => expect((await leaseOf(key)).leaseUntil).toBeGreaterThan(before.leaseUntil));
    expect({ first: first.stops, second: second.stops }).toEqual({ first: ['lost'], second: [] });
    expect(active.ids()).toEqual([second.runId]);
    await active.close();
  });
});

async function claimAfterLapse(worker: ReturnType<typeof aWorker>, key: string): Promise<ClaimedRun> {
  await new Promise((resolve) => setTimeout(resolve, 5));
  return worker.claimRun(key, 1_000);
}
