import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import type { LaneDriver } from '../../src/queue/lane-workers.ts';
import { createLaneDriver } from '../../src/runs/drive-lane.ts';
import type { RunExit } from '../../src/runs/execute-run.ts';
import type { Store } from '../../src/store/base/command.ts';
import { conversationKeyOf } from '../../src/store/base/keys.ts';
import type { ClaimedRun } from '../../src/store/lanes/claim-lane.ts';
import { handOver, releaseFailedRun, renewLeases } from '../../src/store/lanes/leases.ts';
import { readWhy } from '../../src/store/reads/why/read-why.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aLane, aMessage, aRoute, aWorker, demoOnly, framing, holder, unique } from '../store/builders.ts';
import { readOutcomes } from '../store/lanes/outcomes.ts';
import { aStore } from '../support/own-store.ts';
import { patienceMs } from '../support/patience.ts';
import { silentLog } from '../support/silent-log.ts';

/** Longer than any test, so that none waits for a lease to expire. */
const leaseMs = 600_000;

type Executing = { readonly store: Store; execute(run: ClaimedRun): Promise<RunExit | undefined> };

/** Returns a driver whose wakes arrive as they would from Redis. */
function aDriver({ store, execute }: Executing): LaneDriver {
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const driver = createLaneDriver({
    ...{ store, holder, clock: systemClock, log: silentLog, probe: noProbe, leaseMs },
    ...{ texts: textsFor('en'), maxAttempts: 3, turnModels: demoOnly, maxRuns: 5, maxHoldMs: 60_000 },
    framing: () => framing,
    redact: (text) => text.replace('sesame', '[secret]'),
    wakes: {
      wake: ({ laneKey, delayMs }) => {
        const timer = setTimeout(
          () => driver.drive(laneKey, stopping.signal).catch(() => undefined),
          delayMs,
        );
        stopping.signal.addEventListener('abort', () => clearTimeout(timer));
      },
      close: async () => undefined,
    },
    start: () => undefined,
    execute: async (run) => (await execute(run)) ?? undefined,
  });
  return driver;
}

it('resumes a run that a fault interrupted as soon as the store answers, and counts an attempt', async () => {
  const { store } = await aStore();
  const conversation = unique('c');
  await aWorker(store).accept(aMessage({ conversation, text: 'hi' }));
  let refusals = 2;
  const away = () => new ParleyError('store_unavailable', 'The store is away.');
  const flaky: Store = {
    ...store,
    read: store.read.bind(store),
    write: (command, input) => {
      if (command.name === releaseFailedRun.name && refusals-- > 0) return Promise.reject(away());
      return store.write(command, input);
    },
  };
  const seen: ClaimedRun[] = [];
  const driver = aDriver({
    store: flaky,
    execute: async (run) => {
      seen.push(run);
      if (seen.length === 1) throw away();
    },
  });
  await driver.drive(aLane(conversation).key, new AbortController().signal);
  await vi.waitUntil(() => seen.length === 2, { timeout: patienceMs });
  const [first, second] = seen;
  expect(second).toMatchObject({ runId: first?.runId, isResumed: true });
  expect(second?.epoch).toBeGreaterThan(first?.epoch ?? Infinity);
  expect(refusals).toBeLessThan(0);
});

it('resumes a run that was handed over at once if the process stays', async () => {
  const { store } = await aStore();
  const conversation = unique('c');
  await aWorker(store).accept(aMessage({ conversation, text: 'hi' }));
  const seen: ClaimedRun[] = [];
  const driver = aDriver({
    store,
    execute: async (run) => {
      seen.push(run);
      if (seen.length > 1) return undefined;
      await store.write(handOver, run);
      return { kind: 'handed-over' };
    },
  });
  await driver.drive(aLane(conversation).key, new AbortController().signal);
  await vi.waitUntil(() => seen.length === 2, { timeout: patienceMs });
  expect(seen[1]).toMatchObject({ runId: seen[0]?.runId, isResumed: true });
});

it('gives a run up after three attempts and says why', async () => {
  const { store } = await aStore();
  const conversation = unique('c');
  await aWorker(store).accept(aMessage({ conversation, text: 'hi' }));
  let tries = 0;
  let runId = '';
  const driver = aDriver({
    store,
    execute: async (run) => {
      runId = run.runId;
      tries += 1;
      throw new Error(`always, with sesame ${tries}`);
    },
  });
  await driver.drive(aLane(conversation).key, new AbortController().signal);
  const conversationKey = conversationKeyOf(aRoute(conversation));
  const ended = async () => (await store.read(readOutcomes, { conversationKey }))[0] === 'failed: gave_up';
  await vi.waitUntil(ended, { timeout: patienceMs, interval: 100 });
  expect(tries).toBe(3);
  const why = await store.read(readWhy, { id: runId, withExcerpts: false });
  expect(why).toMatchObject({
    account: { runs: [{ endReason: 'gave_up', detail: 'Error: always, with [secret] 3' }] },
  });
});

it("doesn't touch a lane that another process has claimed meanwhile", async () => {
  const { store } = await aStore();
  const conversation = unique('c');
  const lane = aLane(conversation).key;
  await aWorker(store).accept(aMessage({ conversation, text: 'hi' }));
  let other: ClaimedRun | undefined;
  const driver = aDriver({
    store,
    execute: async (run) => {
      await store.write(renewLeases, { holder, leaseMs: -1, runs: [run] });
      other = await aWorker(store, 'other').claimRun(lane);
      throw new Error('too late');
    },
  });
  await driver.drive(lane, new AbortController().signal);
  expect((await aWorker(store, 'third').claim(lane)).kind).toBe('busy');
  if (!other) throw new Error('nobody claimed');
  expect((await aWorker(store, 'other').answer(other, 'done')).next?.kind).toBe('idle');
});
