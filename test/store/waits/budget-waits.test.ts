import { describe, expect, it } from 'vitest';
import { withRoom } from '../../../src/store/waits/budget-waits.ts';

describe('runs that wait for room in a budget', () => {
  const waits = (runId: string, needs: number, { isHeld = false, key = 'day', limit = 100 } = {}) => ({
    ...{ runId, laneKey: runId, key, limit, needs, isHeld },
  });
  const spent = (amount: number, over: object = {}) => ({
    ...{ key: 'day', spent: amount, reserved: 0, raisedTo: null },
    ...over,
  });
  const resumed = (...given: Parameters<typeof withRoom>) =>
    withRoom(...given).ready.map(({ runId }) => runId);

  it('resumes runs in the order in which they wait for a budget, and gives no room twice', () => {
    expect(resumed([waits('a', 30), waits('b', 40), waits('c', 20)], [spent(45)])).toEqual(['a', 'c']);
    // Not by the next page either, before the runs of this one have taken it.
    const { given } = withRoom([waits('a', 30)], [spent(45)]);
    expect(resumed([waits('b', 30), waits('c', 20)], [spent(45)], given)).toEqual(['c']);
  });

  it('keeps runs waiting until there is room or the budget is raised', () => {
    expect(resumed([waits('a', 30)], [spent(71)])).toEqual([]);
    expect(resumed([waits('a', 30)], [spent(70, { reserved: 1 })])).toEqual([]);
    expect(resumed([waits('a', 30)], [spent(71, { raisedTo: 101 })])).toEqual(['a']);
    expect(resumed([waits('a', 30)], [spent(10, { raisedTo: 20 })])).toEqual([]);
  });

  it('resumes a run to tell its person if the room held by others was spent', () => {
    const wait = waits('a', 30, { isHeld: true });
    const inVain = (...given: Parameters<typeof withRoom>) =>
      withRoom(...given).inVain.map(({ runId }) => runId);
    expect([
      resumed([wait], [spent(0, { reserved: 80 })]),
      inVain([wait], [spent(0, { reserved: 80 })]),
    ]).toEqual([[], []]);
    expect([resumed([wait], [spent(80)]), inVain([wait], [spent(80)])]).toEqual([[], ['a']]);
    expect([resumed([wait], [spent(20)]), inVain([wait], [spent(20)])]).toEqual([['a'], []]);
  });

  it('resumes runs whose budget was deleted, because it is empty then', () => {
    expect(resumed([waits('a', 30)], [])).toEqual(['a']);
  });
});
