import { expect, it } from 'vitest';
import { beginBoot } from '../../src/store/boots.ts';
import type { Store } from '../../src/store/command.ts';
import { handOver } from '../../src/store/lanes/leases.ts';
import { readSweep } from '../../src/store/lanes/sweep.ts';
import { aLane, aMessage, aWorker, unique } from './builders.ts';
import { describeEachDatabase } from './each-database.ts';

describeEachDatabase('the sweep', (open) => {
  const aRunOf = async (boot: string) => {
    const conversation = unique('c');
    await aWorker(open()).accept(aMessage({ conversation, text: 'hi' }));
    const { key } = aLane(conversation);
    return { key, run: await aWorker(open(), boot).claimRun(key) };
  };

  const findIn = async (store: Store, laneKey: string) =>
    (await store.read(readSweep, {})).lanes.find((lane) => lane.laneKey === laneKey);

  it('counts the wait of a run whose process died from the next start on, not from 1970', async () => {
    const folder = unique('folder');
    const boot = unique('boot');
    await open().write(beginBoot, { id: boot, folder });
    const { key } = await aRunOf(boot);
    expect(await findIn(open(), key)).toBeUndefined();
    const since = Date.now() - 1000;
    await open().write(beginBoot, { id: unique('boot'), folder });
    expect((await findIn(open(), key))?.waitingSince).toBeGreaterThan(since);
  });

  it('counts the wait of a run that was handed over from that moment on', async () => {
    const { key, run } = await aRunOf(unique('boot'));
    const since = Date.now() - 1000;
    await open().write(handOver, run);
    expect((await findIn(open(), key))?.waitingSince).toBeGreaterThan(since);
  });
});
