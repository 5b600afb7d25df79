import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import type { Log } from '../../src/contracts/log.ts';
import { type SweeperDeps, startSweeper } from '../../src/queue/sweeper.ts';
import type { Store } from '../../src/store/base/command.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { releaseFailedRun, resumePaused } from '../../src/store/lanes/leases.ts';
import { readSweep, type SweepPlace } from '../../src/store/lanes/sweep.ts';
import { titleLaneOf } from '../../src/store/lanes/titles.ts';
import { aLane, aMessage, aWorker, demoOnly } from '../store/builders.ts';
import { aStore } from '../support/own-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

/** Starts a sweeper an hour after a message arrived that no sweep has seen. */
async function anHourLater(
  untilNext: Clock['wait'] = (ms, signal) => systemClock.wait(Math.min(ms, 5), signal),
  more: (store: Store) => Partial<SweeperDeps> = () => ({}),
  before: (store: Store, dataDir: string) => Promise<void> = async () => undefined,
) {
  const { store, dataDir } = await aStore();
  await aWorker(store).accept(aMessage({ conversation: 'c', text: 'hi' }));
  await before(store, dataDir);
  const time = { aheadMs: 3_600_000 };
  const clock: Clock = {
    now: () => Date.now() + time.aheadMs,
    wait: untilNext,
  };
  const alarms: unknown[] = [];
  const woken: string[] = [];
  const log: Log = { ...silentLog, error: (fields) => void alarms.push(fields) };
  const told: string[] = [];
  const worked = new Set<string>();
  const sweeper = startSweeper({
    resume: () => undefined,
    settle: () => undefined,
    show: () => undefined,
    store,
    clock,
    log,
    contextLimit: 50,
    wakes: { wake: ({ laneKey }) => void woken.push(laneKey), close: async () => undefined },
    deliver: () => undefined,
    fetch: () => undefined,
    start: () => undefined,
    worksOn: (laneKey) => worked.has(laneKey),
    reapDead: async () => undefined,
    onAlarm: (laneKey, waitedMs) => void told.push(`${laneKey} waits ${waitedMs > 10_000}`),
    onAlarmOver: (laneKey) => void told.push(`${laneKey} goes on`),
    ...more(store),
  });
  onTestFinished(sweeper.stop);
  return { store, time, alarms, woken, told, worked };
}

it('wakes what waited while no process ran, and raises no alarm for it', async () => {
  const { alarms, woken } = await anHourLater();
  await vi.waitUntil(() => woken.length > 2);
  expect(woken[0]).toBe(aLane('c').key);
  expect(alarms).toEqual([]);
});

it('resumes a paused run although the clock was set back while no process ran', async () => {
  const { woken } = await anHourLater(undefined, undefined, async (store, dataDir) => {
    await store.write(releaseFailedRun, { ...(await aWorker(store).claimRun(aLane('c').key)), pauseMs: 0 });
    const db = new BetterSqlite3(join(dataDir, 'parley.db'));
    db.exec(`update lanes set "leaseUntil" = "leaseUntil" + 7200000`);
    db.close();
  });
  await vi.waitUntil(() => woken.includes(aLane('c').key), { timeout: patienceMs });
});

it('skips a run that this process works on even if its lease has expired', async () => {
  const { store, woken, worked } = await anHourLater();
  const [{ key }, { key: other }] = [aLane('c'), aLane('d')];
  worked.add(key);
  const worker = aWorker(store);
  await worker.claimRun(key, 1);
  // Another due message doesn't wake its lane either.
  await worker.accept(aMessage({ conversation: 'c', text: 'and more' }));
  await worker.accept(aMessage({ conversation: 'd', text: 'hi' }));
  await vi.waitUntil(() => woken.filter((laneKey) => laneKey === other).length > 2, { timeout: patienceMs });
  expect(woken.slice(woken.indexOf(other))).not.toContain(key);
  worked.delete(key);
  const seen = woken.length;
  await vi.waitUntil(() => woken.slice(seen).includes(key), { timeout: patienceMs });
});

it('runs every part of a sweep whatever the others throw, and logs each failure once', async () => {
  let told = 0;
  const broken = () => Promise.reject(new Error('broken'));
  const { alarms, woken } = await anHourLater(undefined, () => ({
    reapDead: broken,
    openAlarms: broken,
    notifyWaiting: async () => {
      told += 1;
      if (told > 1) await broken();
    },
  }));
  await vi.waitUntil(() => told > 3 && woken.length > 3, { timeout: patienceMs });
  const error = expect.any(Error);
  const parts = ['dead processes', 'due rows', 'waiting notices'];
  expect(alarms).toEqual(parts.map((part) => ({ part, error })));
});

it('raises one alarm for a lane that nobody has worked on for 10 s', async () => {
  const { store, time, alarms, woken, told } = await anHourLater();
  await vi.waitUntil(() => woken.length > 0);
  time.aheadMs += 10_001;
  await vi.waitUntil(() => alarms.length > 0);
  const seen = woken.length;
  await vi.waitUntil(() => woken.length > seen + 2);
  const { key } = aLane('c');
  expect(alarms).toEqual([{ laneKey: key, waitedMs: expect.any(Number) }]);
  expect(told).toEqual([`${key} waits true`]);
  // The sweeper's clock is an hour ahead, so only a longer lease counts as live.
  await aWorker(store).claimRun(key, 2 * 3_600_000);
  await vi.waitUntil(() => told.length > 1, { timeout: patienceMs });
  expect(told).toEqual([`${key} waits true`, `${key} goes on`]);
});

it('raises the alarms of all lanes, even of one with a damaged row', async () => {
  const { time, woken, told } = await anHourLater(undefined, undefined, async (store, dataDir) => {
    const db = new BetterSqlite3(join(dataDir, 'parley.db'));
    db.exec(`update inbox set content = '{'`);
    db.close();
    await aWorker(store).accept(aMessage({ conversation: 'd', text: 'hi' }));
  });
  const lanes = ['c', 'd'].map((name) => aLane(name).key);
  await vi.waitUntil(() => lanes.every((key) => woken.includes(key)), { timeout: patienceMs });
  time.aheadMs += 10_001;
  await vi.waitUntil(() => told.length === 2, { timeout: patienceMs });
  expect(told.toSorted()).toEqual(lanes.map((key) => `${key} waits true`));
});

it('raises no alarm for a lane whose first item waits for its files', async () => {
  const { store, time, alarms, woken } = await anHourLater();
  const conversation = 'files';
  const content = { text: 'see', prompt: 'see', sender: { id: 'ann', name: 'ann' }, sentAt: 1 };
  const photo = { kind: 'image', ref: 'photo' } as const;
  const worker = aWorker(store);
  const item = { content: { ...content, attachments: [photo] } };
  await worker.accept(aMessage({ conversation, text: 'see', item }));
  await worker.accept(aMessage({ conversation, text: 'and?' }));
  const { key } = aLane(conversation);
  await vi.waitUntil(() => woken.includes(key), { timeout: patienceMs });
  time.aheadMs += 10_001;
  await vi.waitUntil(() => alarms.length > 0, { timeout: patienceMs });
  const seen = woken.length;
  await vi.waitUntil(() => woken.length > seen + 6, { timeout: patienceMs });
  expect(alarms).toEqual([{ laneKey: aLane('c').key, waitedMs: expect.any(Number) }]);
});

it('raises no alarm for a lane that was worked on between two sweeps', async () => {
  const looks: (() => void)[] = [];
  const { store, time, alarms } = await anHourLater((_, signal) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    signal?.addEventListener('abort', () => resolve());
    looks.push(resolve);
    return promise;
  });
  const lookAgain = async () => {
    const before = looks.length;
    looks.at(-1)?.();
    await vi.waitUntil(() => looks.length > before, { timeout: patienceMs });
  };
  await vi.waitUntil(() => looks.length > 0, { timeout: patienceMs });
  const worker = aWorker(store);
  await worker.answer(await worker.claimRun(aLane('c').key), 'hello', { mayKeepLane: false });
  await worker.accept(aMessage({ conversation: 'c', text: 'and now?' }));
  time.aheadMs += 10_001;
  await lookAgain();
  expect(alarms).toEqual([]);
  time.aheadMs += 10_001;
  await lookAgain();
  expect(alarms).toHaveLength(1);
});

it('ends alarms of other processes whose lanes move again, and no others', async () => {
  const { key } = aLane('c');
  const { told, woken } = await anHourLater(undefined, () => ({
    openAlarms: async () => [key, 'moves again'],
  }));
  await vi.waitUntil(() => woken.length > 4, { timeout: patienceMs });
  expect(told).toEqual(['moves again goes on']);
});

it("continues after a page on which something fails, and restarts when a page can't be read", async () => {
  const places = ['first', 'second'].map(
    (laneKey): SweepPlace => ({ item: { dueAt: 1, laneKey }, lane: 'end', conversation: 'end', run: 'end' }),
  );
  const asked: unknown[] = [];
  let isFailed = false;
  const { woken } = await anHourLater(undefined, (store) => ({
    notifyWaiting: () => Promise.reject(new Error('nobody can be notified')),
    store: {
      ...store,
      write: (command, input) => {
        if (isFailed || (command as unknown) !== resumePaused) return store.write(command, input);
        isFailed = true;
        return Promise.reject(new Error('not written'));
      },
      read: async (query, input) => {
        const found = await store.read(query, input);
        if ((query as unknown) !== readSweep) return found;
        asked.push((input as { readonly after?: unknown }).after);
        if (asked.length === 3) throw new Error('not read');
        return { ...found, next: places[asked.length - 1] };
      },
    },
  }));
  await vi.waitUntil(() => asked.length > 4, { timeout: patienceMs });
  expect(asked.slice(0, 5)).toEqual([undefined, ...places, undefined, undefined]);
  expect(woken.length).toBeGreaterThan(1);
});

/** Starts a sweeper that looks at its store every few milliseconds, and counts its sweeps. */
async function aCountingSweeper(
  before: (store: Store, dataDir: string) => Promise<void>,
  more: Partial<SweeperDeps> = {},
) {
  let sweeps = 0;
  let looks = 0;
  let dataDir = '';
  const wait: Clock['wait'] = (ms, signal) => {
    looks += 1;
    return systemClock.wait(Math.min(ms, 2), signal);
  };
  const counting = (store: Store): Partial<SweeperDeps> => ({
    ...more,
    store: {
      ...store,
      read: (query, input) => {
        if ((query as unknown) === readSweep) sweeps += 1;
        return store.read(query, input);
      },
    },
  });
  const started = await anHourLater(wait, counting, (store, folder) => {
    dataDir = folder;
    return before(store, folder);
  });
  const afterLooks = async (count: number) => {
    const from = looks;
    await vi.waitUntil(() => looks >= from + count, { timeout: patienceMs, interval: 1 });
    return sweeps;
  };
  return { ...started, dataDir, sweeps: () => sweeps, afterLooks };
}

/** Starts a sweeper over a store in which nothing is due. */
async function aRestingSweeper(more: Partial<SweeperDeps> = {}) {
  const sweeper = await aCountingSweeper(async (_, dataDir) => change(dataDir, 'delete from inbox'), more);
  await sweeper.afterLooks(5);
  return sweeper;
}

function change(dataDir: string, sql: string): void {
  const db = new BetterSqlite3(join(dataDir, 'parley.db'));
  db.exec(sql);
  db.close();
}

it('rests while nothing is due and nothing is written', async () => {
  let notices = 0;
  const notifyWaiting = async () => {
    notices += 1;
  };
  const { dataDir, afterLooks } = await aRestingSweeper({ notifyWaiting });
  change(dataDir, `update lanes set "nextSeq" = "nextSeq" + 1`);
  const sweeps = await afterLooks(10);
  expect([sweeps, notices]).toEqual([2, 1]);
  expect([await afterLooks(50), notices]).toEqual([2, 1]);
});

it('ends its rest when this process writes', async () => {
  const { store, woken } = await aRestingSweeper();
  await aWorker(store).accept(aMessage({ conversation: 'd', text: 'hi' }));
  await vi.waitUntil(() => woken.includes(aLane('d').key), { timeout: patienceMs });
});

it('ends its rest when another process writes', async () => {
  const { dataDir, sweeps, afterLooks } = await aRestingSweeper();
  const before = sweeps();
  change(dataDir, `insert into "laneClasses" (name) values ('main') on conflict do nothing`);
  change(dataDir, `update lanes set "nextSeq" = "nextSeq" + 1`);
  expect(await afterLooks(3)).toBeGreaterThan(before);
  const rested = await afterLooks(20);
  expect(await afterLooks(20)).toBe(rested);
});

it('ends its rest when a message becomes due', async () => {
  const { store, dataDir, time, woken, sweeps, afterLooks } = await aRestingSweeper();
  await aWorker(store).accept(aMessage({ conversation: 'd', text: 'hi' }));
  const dueAt = Date.now() + 30_000;
  change(dataDir, `update inbox set "notifiedAt" = 0, "dueAt" = ${dueAt}`);
  await afterLooks(5);
  const [before, seen] = [sweeps(), woken.length];
  expect(await afterLooks(20)).toBe(before);
  expect(woken.length).toBe(seen);
  time.aheadMs += 31_000;
  await afterLooks(3);
  expect(sweeps()).toBeGreaterThan(before);
});

it('ends its rest when the clock is set back', async () => {
  const { time, sweeps, afterLooks } = await aRestingSweeper();
  const before = sweeps();
  time.aheadMs -= 1_000;
  expect(await afterLooks(5)).toBe(before + 1);
});

it('rests for a minute at most', async () => {
  const { time, sweeps, afterLooks } = await aRestingSweeper();
  const before = sweeps();
  time.aheadMs += 59_000;
  expect(await afterLooks(5)).toBe(before);
  time.aheadMs += 1_001;
  expect(await afterLooks(5)).toBe(before + 1);
});

/** Starts a sweeper over a store in which one lane has a run, and its session waits for its title. */
async function aSweeperWithATitle() {
  const { promise, resolve } = Promise.withResolvers<ClaimedRun>();
  const sweeper = await aCountingSweeper(async (store) => {
    const worker = aWorker(store, undefined, undefined, demoOnly);
    resolve(await worker.claimRun(aLane('c').key, 60_000));
  });
  const run = await promise;
  return { ...sweeper, run, titleLane: titleLaneOf(run.sessionId) };
}

it('starts a title only when no other lane is running', async () => {
  const { store, run, titleLane, woken, afterLooks } = await aSweeperWithATitle();
  await afterLooks(20);
  expect(woken).toEqual([]);
  await aWorker(store).answer(run, 'hello', { mayKeepLane: false });
  await vi.waitUntil(() => woken.includes(titleLane), { timeout: patienceMs });
});

it('starts a title only when no other lane is due', async () => {
  const { store, run, titleLane, woken, dataDir, afterLooks } = await aSweeperWithATitle();
  await aWorker(store).accept(aMessage({ conversation: 'd', text: 'hi' }));
  await aWorker(store).answer(run, 'hello', { mayKeepLane: false });
  await afterLooks(20);
  expect(new Set(woken)).toEqual(new Set([aLane('d').key]));
  change(dataDir, `delete from inbox where "laneKey" = '${aLane('d').key}'`);
  await vi.waitUntil(() => woken.includes(titleLane), { timeout: patienceMs });
});

it('starts a title after a minute whatever else is running', async () => {
  const { titleLane, woken, dataDir } = await aSweeperWithATitle();
  change(dataDir, `update inbox set "dueAt" = "dueAt" - 60000 where "laneKey" = '${titleLane}'`);
  await vi.waitUntil(() => woken.includes(titleLane), { timeout: patienceMs });
});
