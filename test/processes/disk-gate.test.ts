import { expect, it } from 'vitest';
import { DiskGate } from '../../src/processes/disk-gate.ts';
import { flushEventLoop } from '../support/flush-event-loop.ts';
import { patienceMs } from '../support/patience.ts';

/** Returns a gate, and calls on it that hang until the test ends them. */
function aGate(patienceMs = 40) {
  const gate = new DiskGate({ most: 3, maxPerItem: 2, patienceMs });
  const hanging: (() => void)[] = [];
  const counts = { running: 0, most: 0 };
  const hang = <T>(disk: string, result: T, drop?: (late: T) => void) =>
    gate.run(
      disk,
      async () => {
        counts.running += 1;
        counts.most = Math.max(counts.most, counts.running);
        await new Promise<void>((resolve) => hanging.push(resolve));
        counts.running -= 1;
        return result;
      },
      drop,
    );
  const answer = async () => {
    for (const end of hanging.splice(0)) end();
    await flushEventLoop();
  };
  return { gate, hang, counts, answer };
}

const fail = (calls: readonly Promise<unknown>[]) =>
  Promise.all(calls.map((call) => expect(call).rejects.toMatchObject(silence)));
const silence = { code: 'tool_failed', message: expect.stringContaining("isn't responding") };

it('lets calls that never return occupy three threads at most, and refuses others', async () => {
  const { gate, hang, counts } = aGate();
  const calls = ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'c'].map((disk) => hang(disk, 1));
  await fail(calls);
  expect(counts).toEqual({ running: 3, most: 3 });
  await expect(gate.run('d', async () => 'done')).rejects.toMatchObject(silence);
});

it("serves other disks while one doesn't answer, and that one again once its calls return", async () => {
  const { gate, hang, answer } = aGate();
  await fail([hang('a', 1), hang('a', 2)]);
  const made: string[] = [];
  await fail([gate.run('a', async () => made.push('a'))]);
  await gate.run('b', async () => made.push('b'));
  expect(made).toEqual(['b']);
  await answer();
  expect(await gate.run('a', async () => 'done')).toBe('done');
});

it('makes calls in order, and passes on results and errors', async () => {
  const { gate } = aGate(patienceMs);
  const order: number[] = [];
  const calls = Array.from({ length: 50 }, (_, index) =>
    gate.run('a', async () => {
      order.push(index);
      await flushEventLoop();
      if (index === 7) throw new Error('the seventh');
      return index;
    }),
  );
  const results = await Promise.allSettled(calls);
  expect(order).toEqual([...order].sort((one, other) => one - other));
  expect(results.filter(({ status }) => status === 'rejected')).toMatchObject([
    { reason: { message: 'the seventh' } },
  ]);
});

it('gives up late calls, and closes what could not be closed once they return', async () => {
  const { gate, hang, answer } = aGate();
  const done: string[] = [];
  await fail([1, 2].map((one) => hang('a', `late ${one}`, (late) => done.push(late))));
  await gate.finish('a', async () => void done.push('closed'));
  expect(done).toEqual([]);
  await answer();
  expect(done.sort()).toEqual(['closed', 'late 1', 'late 2']);
});
