/** Which messages an answer quotes when several have waited, by the mode of the lane. */
import { expect, it } from 'vitest';
import type { QueueMode } from '../../src/contracts/queue-settings.ts';
import { routeOf } from '../../src/contracts/route.ts';
import type { Store } from '../../src/store/base/command.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { anAccount, createIntakeFixture } from './support/intake-fixture.ts';

describeEachDatabase('a run of a message that has waited', (open) => {
  it('marks messages as late that others followed in followup mode, but not a single message', async () => {
    const { town, ann, laneKey } = await aTown(open(), 'followup');
    const first = await town.worker.claimRun(laneKey);
    await town.send(ann, 'two');
    await town.send(ann, 'three');
    expect(isBehind(first)).toBe(false);
    await town.worker.answer(first, 'to one');
    for (const answer of ['to two', 'to three']) {
      const run = await town.worker.claimRun(laneKey);
      expect(isBehind(run)).toBe(true);
      await town.worker.answer(run, answer);
    }
    await town.send(ann, 'four');
    expect(isBehind(await town.worker.claimRun(laneKey))).toBe(false);
  });

  it.each(['steer', 'collect', 'interrupt'] as const)('marks no message as late in mode %s', async (mode) => {
    const { town, ann, laneKey } = await aTown(open(), mode);
    const first = await town.worker.claimRun(laneKey);
    await town.send(ann, 'two');
    await town.worker.answer(first, 'to one');
    const next = await town.worker.claim(laneKey);
    expect(next.kind === 'run' && isBehind(next.run)).toBe(false);
  });
});

const isBehind = ({ target }: { readonly target: Parameters<typeof routeOf>[0] }): boolean =>
  routeOf(target)?.isBehind === true;

/** Returns a conversation in which Ann has said “one”. */
async function aTown(store: Store, mode: QueueMode) {
  const settings = { mode, debounceMs: 0, quietMs: 0, cap: 20, drop: 'summarize' } as const;
  const queue = { dm: settings, group: settings, channels: {}, conversations: {} };
  const ann = anAccount('alpha');
  const town = createIntakeFixture(store, { config: { queue } });
  return { town, ann, laneKey: town.laneOf(await town.send(ann, 'one')) };
}
