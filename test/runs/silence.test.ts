import { describe, expect, it } from 'vitest';
import { executeRun } from '../../src/runs/execute-run.ts';
import { enqueueItems } from '../../src/store/intake/enqueue-items.ts';
import type { InnerItem } from '../../src/store/items/enqueue-item.ts';
import { says, scriptedModel } from '../agent/support/scripted-model.ts';
import { aLane, aMessage, aRoute, aWorker, unique } from '../store/builders.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { openOwnStore } from './own-store.ts';
import { runDeps, someActiveRuns } from './run-builders.ts';

describe('ANNOUNCE_SKIP', () => {
  const store = openOwnStore();

  const outcomesWhen = async (isAnnounced: boolean) => {
    const [conversation, boot] = [unique('c'), unique('boot')];
    const lane = aLane(conversation);
    const worker = aWorker(store(), boot);
    await aWorker(store()).accept(aMessage({ conversation, text: 'hello' }));
    const run = await worker.claimRun(lane.key);
    if (isAnnounced) {
      const item: InnerItem = {
        id: unique('item'),
        source: 'child',
        sourceKey: unique('child:key'),
        reach: 'always',
        target: aRoute(conversation),
        authority: run.authority,
        content: {
          text: 'It ended.',
          prompt: 'It ended.',
          sender: { id: '', name: '' },
          sentAt: 1,
          attachments: [],
        },
      };
      await store().write(enqueueItems, { items: [{ lane, item }] });
    }
    const active = someActiveRuns(store(), boot);
    const model = scriptedModel(says('ANNOUNCE_SKIP'));
    const signal = new AbortController().signal;
    const deps = runDeps(store(), { active, model, tools: [] });
    await executeRun(deps, run, { signal, mayKeepLane: () => false, claims: () => undefined });
    await active.close();
    const { inbox } = await readLane(store(), lane.key);
    return inbox.map(({ outcome }) => outcome);
  };

  it('sends nothing in a run that has taken an announcement', async () => {
    expect(await outcomesWhen(true)).toEqual(['silent', 'silent']);
  });

  it('is ordinary text anywhere else', async () => {
    expect(await outcomesWhen(false)).toEqual(['answered']);
  });
});
