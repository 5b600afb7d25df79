import { expect, it } from 'vitest';
import { ParleyError } from '../../src/contracts/errors.ts';
import { executeRun } from '../../src/runs/execute-run.ts';
import type { Store } from '../../src/store/base/command.ts';
import { releaseFailedRun } from '../../src/store/lanes/leases.ts';
import { needsBoundary } from '../../src/store/lanes/steer.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aLane, aMessage, aWorker, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

const options = { signal: new AbortController().signal, mayKeepLane: () => false, claims: () => undefined };

describeEachDatabase('a run whose store is away while its loop asks it', (open) => {
  it('is thrown to its holder, tells nobody, and is answered by the next attempt', async () => {
    const conversation = unique('c');
    const { key: laneKey } = aLane(conversation);
    const holder = unique('boot');
    const worker = aWorker(open(), holder);
    await worker.accept(aMessage({ conversation, text: 'one' }));
    const active = someActiveRuns(open(), holder);
    const away = new ParleyError('store_unavailable', 'The store is away.');
    const store: Store = {
      ...open(),
      read: (query, input) =>
        query.query === needsBoundary.query ? Promise.reject(away) : open().read(query, input),
    };
    const play = async (from: Store) => {
      const run = await worker.claimRun(laneKey);
      const deps = runDeps(from, { active, model: scriptedModel(says('hello')), tools: [] });
      await executeRun(deps, run, options).finally(() =>
        open()
          .write(releaseFailedRun, { ...run, pauseMs: 0 })
          .catch(() => undefined),
      );
    };
    await expect(play(store)).rejects.toBe(away);
    expect((await readLane(open(), laneKey)).inbox).toMatchObject([{ state: 'taken', outcome: null }]);
    await play(open());
    await active.close();
    expect((await readLane(open(), laneKey)).inbox).toMatchObject([{ state: 'ended', outcome: 'answered' }]);
  });
});
