import { expect, it } from 'vitest';
import { renderTrace } from '../../../../src/cli/render-trace.ts';
import { readWhy } from '../../../../src/store/reads/why/read-why.ts';
import { describeEachDatabase } from '../../each-database.ts';
import { aFamilyWorker } from '../../family.ts';

describeEachDatabase('the trace of a message with sub-agents', (open) => {
  const traceOf = async (id: string, withExcerpts = false) => {
    const found = await open().read(readWhy, { id, withExcerpts });
    if (found.kind !== 'account') throw new Error(`${id} is ${found.kind}`);
    return found.account;
  };

  it('traces a message through its sub-agents to the run that read their results, and back', async () => {
    const worker = aFamilyWorker(open());
    const { run, lane } = await worker.begin();
    const child = await worker.spawnOne(run, { over: { label: 'secret plans' } });
    await worker.answer(run, 'I have asked somebody.');
    const childRun = await worker.claimRun(child.laneKey);
    const below = await worker.spawnOne(childRun);
    const belowRun = await worker.claimRun(below.laneKey);
    await worker.answer(childRun, 'so far');
    await worker.answer(belowRun, 'found');
    const relay = await worker.claimRun(child.laneKey);
    await worker.answer(relay, 'all found');
    const last = await worker.claimRun(lane.key);
    await worker.answer(last, 'Here it is.');

    const whole = [run, childRun, belowRun, relay, last].map(({ runId }) => runId).sort();
    for (const id of [run.runId, childRun.runId, belowRun.runId, last.runId, child.id, below.id]) {
      const { runs, children } = await traceOf(id);
      expect([id, runs.map((one) => one.id).sort()]).toEqual([id, whole]);
      expect(children).toMatchObject([
        { id: child.id, depth: 1, parentRunId: run.runId, status: 'completed', told: 'lane' },
        { id: below.id, depth: 2, parentRunId: childRun.runId, status: 'completed', told: 'lane' },
      ]);
    }
    const story = renderTrace(await traceOf(run.runId));
    expect(story).toContain(`sub-agent ${child.id} was spawned by run ${run.runId}`);
    expect(story).toMatch(
      new RegExp(
        `sub-agent ${child.id} ended \\(completed\\), tokens: \\d+.*; its result went into its parent's lane`,
      ),
    );
    expect(story).not.toContain('secret plans');
    expect(renderTrace(await traceOf(child.id, true))).toContain('“secret plans”');
  });

  it('traces a sub-agent that is still at work, even by a prefix of its id', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run);
    for (const id of [child.id, child.id.slice(0, 5), child.id.slice(0, 9).toUpperCase()])
      expect(renderTrace(await traceOf(id))).toContain(`sub-agent ${child.id} is queued`);
    const unlike = child.id.slice(0, 5).split('').reverse().join('').padEnd(15, 'q');
    expect(await open().read(readWhy, { id: unlike, withExcerpts: false })).toEqual({ kind: 'unknown' });
  });
});
