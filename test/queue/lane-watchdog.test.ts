import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import { startSweeper } from '../../src/queue/sweeper.ts';
import { conversationKeyOf } from '../../src/store/base/keys.ts';
import { aLane, aMessage, aRoute, aWorker } from '../store/builders.ts';
import { readOutcomes } from '../store/lanes/outcomes.ts';
import { aStore } from '../support/own-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

it('gives a lane that has waited for 10 s the first free slot, without any wake', async () => {
  const { store } = await aStore();
  const worker = aWorker(store);
  const { key } = aLane('c');
  await worker.accept(aMessage({ conversation: 'c', text: 'hi' }));

  const time = { aheadMs: 0 };
  const clock: Clock = {
    now: () => Date.now() + time.aheadMs,
    wait: (ms, signal) => systemClock.wait(Math.min(ms, 5), signal),
  };
  let isFree = false;
  let looks = 0;
  const told: string[] = [];
  const sweeper = startSweeper({
    resume: () => undefined,
    settle: () => undefined,
    show: () => undefined,
    store,
    clock,
    log: silentLog,
    contextLimit: 50,
    // Redis is down: no wake ever arrives.
    wakes: { wake: () => undefined, close: async () => undefined },
    deliver: () => undefined,
    fetch: () => undefined,
    start: () => undefined,
    reapDead: async () => undefined,
    drive: ({ laneKey }) => {
      looks += 1;
      if (!isFree) return false;
      isFree = false;
      worker.claimRun(laneKey).then((run) => worker.answer(run, 'hello'));
      return true;
    },
    onAlarm: (laneKey) => void told.push(`${laneKey} waits`),
    onAlarmOver: (laneKey) => void told.push(`${laneKey} goes on`),
  });
  onTestFinished(sweeper.stop);

  await vi.waitUntil(() => looks > 2, { timeout: patienceMs });
  expect(told).toEqual([]);
  time.aheadMs = 10_001;
  await vi.waitUntil(() => told.length > 0, { timeout: patienceMs });
  isFree = true;
  await vi.waitUntil(() => told.length > 1, { timeout: patienceMs });
  expect(told).toEqual([`${key} waits`, `${key} goes on`]);
  const conversationKey = conversationKeyOf(aRoute('c'));
  await vi.waitUntil(async () => (await store.read(readOutcomes, { conversationKey }))[0] === 'answered');
});
