import { expect, it, onTestFinished } from 'vitest';
import type { ChildRecord } from '../../../src/contracts/child.ts';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import { findChild, readChildren } from '../../../src/store/children/child.ts';
import { spawnChild } from '../../../src/store/children/spawn-child.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';

const crowd = 50;
const cap = 5;
/** A lease that doesn't expire even on a loaded machine. */
const patientMs = 600_000;

/** Counts the lanes of the class that have a run, across all processes. */
const readRunning: StoreQuery<null, number> = {
  query: 'readRunning',
  run: async (tx) => {
    const rows = await tx.db
      .selectFrom('lanes')
      .select('key')
      .where('class', '=', 'sub-1')
      .where('runId', 'is not', null)
      .execute();
    return rows.length;
  },
};

describeEachDatabase('many sub-agents', (open, beside) => {
  it('runs 50 sub-agents five at a time in two processes, and ends each once', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const workers = [open(), other].map((store, n) =>
      aFamilyWorker(store, { name: `boot-${n}`, caps: { 'sub-1': cap } }),
    );
    const workerAt = (n: number) => workers[n % 2] ?? aFamilyWorker(open());
    const first = aFamilyWorker(open());
    const { run } = await first.begin();
    const limits = { children: crowd, nodes: crowd };
    const spawned = await Promise.all(
      Array.from({ length: crowd }, (_, n) =>
        (n % 2 ? open() : other).write(
          spawnChild,
          workerAt(n).inputOf(run, { callId: `in a crowd ${n}`, limits }),
        ),
      ),
    );
    const lanes = spawned.flatMap((one) => (one.kind === 'spawned' ? [one.child.laneKey] : []));
    expect(lanes).toHaveLength(crowd);
    await first.answer(run);

    const running: number[] = [];
    const told: string[] = [];
    const work = async (laneKey: string, n: number): Promise<void> => {
      const claimed = await workerAt(n).claim(laneKey, patientMs);
      if (claimed.kind !== 'run') return;
      running.push(await open().read(readRunning, null));
      const { effects } = await workerAt(n).answer(claimed.run, laneKey);
      told.push(laneKey);
      const woken = effects.wakes.filter((wake) => wake.class === 'sub-1');
      await Promise.all(woken.map((wake) => work(wake.laneKey, n + 1)));
    };
    // The sweep finds what a wake misses; here everything that hasn't ended is tried again.
    for (let left = lanes; left.length > 0; left = lanes.filter((lane) => !told.includes(lane)))
      await Promise.all(left.map(work));

    expect(Math.max(...running)).toBe(cap);
    expect([...told].sort()).toEqual([...lanes].sort());
    const children = await open().read(readChildren, { sessionId: run.sessionId, limit: 2 * crowd });
    expect(children.map(endOf)).toEqual(children.map(() => ['done', 'completed', 'lane']));
    await first.answer(await first.claimRun(run.laneKey));
  });

  it('never deadlocks parents that wait for children at all five depths with one slot per class', async () => {
    const deepest = 5;
    const caps = Object.fromEntries([1, 2, 3, 4, 5].map((depth) => [`sub-${depth}`, 1]));
    const worker = aFamilyWorker(open(), { caps });
    const lanes: string[] = [];
    const spawnAndPark = async (run: ClaimedRun) => {
      const count = depthOf(run.laneKey) === 0 ? 2 : 1;
      for (let n = 0; n < count; n++) lanes.push((await worker.spawnOne(run, { mode: 'wait' })).laneKey);
      await worker.park(run);
    };
    const roots = [await worker.begin(), await worker.begin()];
    for (const { run } of roots) await spawnAndPark(run);

    /** Claims the lane and takes its run one step further; returns whether it could. */
    const step = async (laneKey: string): Promise<boolean> => {
      const claimed = await worker.claim(laneKey, patientMs);
      if (claimed.kind !== 'run') return false;
      if (claimed.run.isResumed || depthOf(laneKey) === deepest) await worker.answer(claimed.run);
      else await spawnAndPark(claimed.run);
      return true;
    };
    const all = () => [...roots.map(({ lane }) => lane.key), ...lanes];
    for (let moved = true; moved; ) {
      moved = false;
      for (const laneKey of all()) if (await step(laneKey)) moved = true;
    }
    for (const { run } of roots) {
      const children = await open().read(readChildren, { sessionId: run.sessionId, limit: 100 });
      expect(children.map(endOf)).toEqual(
        Array.from({ length: 2 * deepest }, () => ['done', 'completed', 'tool']),
      );
    }
    expect(await worker.claim(roots[0]?.lane.key ?? '')).toEqual({ kind: 'idle' });
  });

  it('keeps the siblings of a failed sub-agent, and their children, running', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const [failing, good] = [await worker.spawnOne(run), await worker.spawnOne(run)];
    await worker.answer(run);
    const failingRun = await worker.claimRun(failing.laneKey);
    const goodRun = await worker.claimRun(good.laneKey);
    const [lost, kept] = [await worker.spawnOne(failingRun), await worker.spawnOne(goodRun)];
    await worker.fail(failingRun);
    const find = (childId: string) => open().read(findChild, { childId });
    expect(await find(failing.id)).toMatchObject({ state: 'done', status: 'failed', told: 'lane' });
    expect(await find(lost.id)).toMatchObject({ state: 'done', status: 'stopped', told: 'none' });
    expect(await find(kept.id)).toMatchObject({ state: 'queued' });
    await worker.answer(goodRun);
    await worker.answer(await worker.claimRun(kept.laneKey));
    await worker.answer(await worker.claimRun(good.laneKey));
    expect(await find(good.id)).toMatchObject({ state: 'done', status: 'completed', told: 'lane' });
  });
});

function depthOf(laneKey: string): number {
  return laneKey.split('@').length - 1;
}

function endOf({ state, status, told }: ChildRecord) {
  return [state, status, told];
}
