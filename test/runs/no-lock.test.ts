import { expect, it, onTestFinished } from 'vitest';
import { executeRun } from '../../src/runs/execute-run.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

describeEachDatabase('while the model thinks', (open, beside) => {
  it('another process takes in messages for that lane and works others: no lock is held (pitfall 13)', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const [conversation, elsewhere] = [unique('c'), unique('c')];
    const door = aWorker(other, unique('boot'));
    await door.accept(aMessage({ conversation, text: 'one' }));
    const holder = unique('boot');
    const run = await aWorker(open(), holder).claimRun(aLane(conversation).key);
    const model = scriptedModel(async function* () {
      // All of this would wait for ever, or for a lock that gives up, were a transaction open here.
      await door.accept(aMessage({ conversation, text: 'two' }));
      await door.accept(aMessage({ conversation: elsewhere, text: 'three' }));
      await door.answer(await door.claimRun(aLane(elsewhere).key), 'ok');
      yield* says('here');
    });
    const active = someActiveRuns(open(), holder);
    onTestFinished(active.close);
    const deps = runDeps(open(), { active, model, tools: [] });
    await executeRun(deps, run, {
      signal: new AbortController().signal,
      mayKeepLane: () => false,
      claims: () => undefined,
    });
    const [busy, beneath] = await Promise.all(
      [conversation, elsewhere].map((one) => readLane(open(), aLane(one).key)),
    );
    expect(busy?.told.map(({ text }) => text)).toEqual(['one', 'two']);
    expect(busy?.openRuns).toBe(0);
    expect(beneath?.inbox.map(({ outcome }) => outcome)).toEqual(['answered']);
  });
});
