import { expect, it } from 'vitest';
import { promoteItem } from '../../../src/store/items/change-item.ts';
import { findQueuedItem, readQueuedItems } from '../../../src/store/reads/read-waiting-items.ts';
import { aMessage } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker } from '../family.ts';

const actor = { ref: 'console', people: [], mayChangeAny: true, mayPromoteOwn: true };

describeEachDatabase('the waiting items of all conversations', (open) => {
  it('lists the waiting items of all lanes in order, without those of sub-agents', async () => {
    const store = open();
    const worker = aFamilyWorker(store);
    const one = await worker.begin('followup');
    const two = await worker.begin('collect');
    const say = ({ lane, conversation }: typeof one, text: string) =>
      worker.accept(aMessage({ conversation, lane, text }));
    for (const text of ['a', 'b', 'c']) await say(one, text);
    await say(two, 'd');
    const child = await worker.spawnOne(one.run);
    const before = await store.read(readQueuedItems, { limit: 10 });
    const c = before.find(({ excerpt }) => excerpt === 'c');
    await store.write(promoteItem, { laneKey: one.lane.key, number: c?.number ?? 0, actor });

    const items = await store.read(readQueuedItems, { limit: 10 });
    const inLane = ({ lane }: typeof one) =>
      items
        .filter(({ laneKey }) => laneKey === lane.key)
        .map(({ position, mode, sender, excerpt, isAhead }) => [position, mode, sender, excerpt, isAhead]);
    expect(inLane(one)).toEqual([
      [1, 'followup', 'test:ann', 'c', true],
      [2, 'followup', 'test:ann', 'a', false],
      [3, 'followup', 'test:ann', 'b', false],
    ]);
    expect(inLane(two)).toEqual([[1, 'collect', 'test:ann', 'd', false]]);
    expect(items.filter(({ laneKey }) => laneKey === child.laneKey)).toEqual([]);
    expect(await store.read(readQueuedItems, { limit: 2 })).toHaveLength(2);
  });

  it('finds a waiting item by the beginning of its id, and a taken one by the whole id', async () => {
    const store = open();
    const worker = aFamilyWorker(store);
    const { run, lane, conversation } = await worker.begin('followup');
    const ids = ['aa-one', 'aa-two'];
    for (const id of ids) await worker.accept(aMessage({ conversation, lane, text: id, item: { id } }));
    const find = (id: string) => store.read(findQueuedItem, { id });
    expect(await find('aa-o')).toMatchObject({ kind: 'found', id: 'aa-one', laneKey: lane.key });
    expect(await find('aa-')).toEqual({ kind: 'several' });
    expect(await find('')).toEqual({ kind: 'none' });
    expect(await find('zz')).toEqual({ kind: 'none' });
    await worker.answer(run);
    await worker.claimRun(lane.key);
    expect(await find('aa-o')).toEqual({ kind: 'none' });
    expect(await find('aa-one')).toMatchObject({ kind: 'found', id: 'aa-one' });
  });
});
