import { expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../../src/store/base/command.ts';
import { isLong } from '../../support/long-run.ts';
import { aLane, aMessage, aWorker, defaults, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

const claims = isLong ? 10_000 : 150;

describeEachDatabase('two workers on one lane', (open, beside) => {
  it('gives the lane to one worker at a time, under a growing epoch', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const conversation = unique('c');
    const lane = aLane(conversation, { settings: { ...defaults, mode: 'followup' } });
    const intake = aWorker(open());
    const say = () => intake.accept(aMessage({ conversation, text: unique('text'), lane }));
    for (let n = 0; n < 4; n++) await say();

    const epochs: number[] = [];
    const clashes: string[] = [];
    let holder: string | undefined;
    let asked = 0;
    const work = async (store: Store, name: string) => {
      const worker = aWorker(store, name);
      while (asked < claims || epochs.length < claims / 20) {
        asked += 1;
        const claim = await worker.claim(lane.key);
        if (claim.kind !== 'run') continue;
        if (holder !== undefined) clashes.push(`${name} began beside ${holder} at epoch ${claim.run.epoch}`);
        holder = name;
        epochs.push(claim.run.epoch);
        await say();
        holder = undefined;
        await worker.answer(claim.run, 'ok', { mayKeepLane: false });
      }
    };
    await Promise.all([work(open(), 'boot-a'), work(other, 'boot-b')]);

    expect(clashes).toEqual([]);
    expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
    const { inbox, told } = await readLane(open(), lane.key);
    expect(told.length).toBe(inbox.filter((row) => row.state !== 'waiting').length);
    expect(new Set(told.map((message) => message.text)).size).toBe(told.length);
  });
});
