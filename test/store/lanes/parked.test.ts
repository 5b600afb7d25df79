import { expect, it } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import { type MessagePart, waitExpired } from '../../../src/contracts/message.ts';
import { revokeOnConsole } from '../../../src/store/access/operate-access.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { commitToolTurn, markToolStarted, storeToolResults } from '../../../src/store/lanes/commit-turn.ts';
import { handOver, renewLeases } from '../../../src/store/lanes/leases.ts';
import { parkRun, settleParkedCall } from '../../../src/store/lanes/park-run.ts';
import { recoverRun } from '../../../src/store/lanes/recover-run.ts';
import { readSweep } from '../../../src/store/lanes/sweep.ts';
import { addProcess } from '../../../src/store/processes/process-records.ts';
import { readActivity } from '../../../src/store/reads/read-activity.ts';
import { readHistory } from '../../../src/store/reads/read-transcript.ts';
import { isLong } from '../../support/long-run.ts';
import { atConsole } from '../access-builders.ts';
import {
  aCommand,
  account,
  aLane,
  aMessage,
  aWorker,
  defaults,
  endWithout,
  holder,
  newCommand,
  unique,
} from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readLane } from '../lane-at-rest.ts';

const held = ({ laneKey, epoch, runId }: ClaimedRun) => ({ laneKey, epoch, runId });

const hourMs = 3_600_000;
const rounds = isLong ? 20 : 8;

/** Returns whether a sweep `inMs` from now finds the lane. */
async function isSwept(store: Store, laneKey: string, inMs = 0): Promise<boolean> {
  const { lanes } = await store.read(readSweep, { now: Date.now() + inMs + 1_000 });
  return lanes.some((lane) => lane.laneKey === laneKey);
}

/** Returns a run that has started these calls, and their message. */
async function aRunWithCalls(
  store: Store,
  conversation: string,
  over: {
    readonly callIds?: readonly string[];
    readonly started?: readonly string[];
    readonly mode?: 'steer' | 'interrupt';
    readonly sender?: string;
  } = {},
) {
  const { callIds = ['1'], started = callIds, mode = 'steer', sender = 'ann' } = over;
  const worker = aWorker(store);
  const lane = aLane(conversation, { settings: { ...defaults, mode } });
  await worker.accept(aMessage({ conversation, text: 'go', lane, sender }));
  const run = await worker.claimRun(lane.key);
  const messageId = unique('message');
  const calls = callIds.map((callId) => ({ callId, name: 'ask', input: '{}' }));
  const parts: MessagePart[] = [
    ...calls.map(
      ({ callId, name, input }): MessagePart => ({
        type: 'tool_call',
        data: { id: callId, name, input, finished: true },
      }),
    ),
    { type: 'finish', data: { reason: 'tool_use', time: 1 } },
  ];
  const message = { id: messageId, sessionId: run.sessionId, model: 'test', parts };
  await store.write(commitToolTurn, { ...held(run), message, calls });
  for (const callId of started) await store.write(markToolStarted, { ...held(run), messageId, callId });
  return { worker, lane, run, messageId };
}

const park = (store: Store, run: ClaimedRun, workedMs = 1_000, waitMs = 24 * hourMs) =>
  store.write(parkRun, { ...held(run), reason: 'an approval', workedMs, waitMs });

function answerOf(
  callId: string,
  content = 'approved',
): { callId: string; isError: boolean; parts: MessagePart[] } {
  const data = { tool_call_id: callId, name: 'ask', content, is_error: false };
  return { callId, isError: false, parts: [{ type: 'tool_result', data }] };
}

const settle = (store: Store, runId: string, callId = '1', content?: string) =>
  store.write(settleParkedCall, { runId, ...answerOf(callId, content) });

async function resultsIn(store: Store, { sessionId }: ClaimedRun): Promise<readonly string[]> {
  const history = await store.read(readHistory, { sessionId });
  return history.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool_result' ? [part.data.content] : [])),
  );
}

const isStale = (error: unknown) => hasCode(error, 'stale_epoch');

describeEachDatabase('a parked run', (open, beside) => {
  it("shows a parked run in its lane's activity until it continues", async () => {
    const store = open();
    const { run, lane } = await aRunWithCalls(store, unique('c'));
    const waitsFor = async () => (await store.read(readActivity, { laneKey: lane.key })).run?.waitsFor;
    expect(await waitsFor()).toBeUndefined();
    await park(store, run);
    expect(await waitsFor()).toBe('an approval');
    await settle(store, run.runId);
    expect(await waitsFor()).toBeUndefined();
  });

  it('keeps the lane of a parked run without holder or lease, and starts no other run there', async () => {
    const store = open();
    const conversation = unique('c');
    const { worker, lane, run } = await aRunWithCalls(store, conversation);
    expect(await park(store, run)).toMatchObject({ kind: 'parked' });
    await worker.accept(aMessage({ conversation, text: 'are you there?', lane }));
    expect(await worker.claim(lane.key)).toEqual({ kind: 'parked' });
    expect((await readLane(store, lane.key)).openRuns).toBe(1);
    const renewed = await store.write(renewLeases, { holder, leaseMs: 10_000, runs: [held(run)] });
    expect(renewed.lost).toEqual([run.runId]);
  });

  it('parks a run for a fraction of a millisecond', async () => {
    const store = open();
    const { run, worker, lane } = await aRunWithCalls(store, unique('c'));
    expect(await park(store, run, 1_000, hourMs / 7)).toMatchObject({ kind: 'parked' });
    expect(await worker.claim(lane.key)).toEqual({ kind: 'parked' });
  });

  it('rejects later writes of the process that parked the run', async () => {
    const store = open();
    const { run, worker } = await aRunWithCalls(store, unique('c'));
    await park(store, run);
    for (const late of [() => park(store, run), () => worker.answer(run, 'late')])
      await expect(late()).rejects.toSatisfy(isStale);
    await expect(store.write(handOver, held(run))).rejects.toSatisfy(isStale);
  });

  it("doesn't wake a parked run for the sweep, a dead process or a message", async () => {
    const store = open();
    const conversation = unique('c');
    const { worker, lane, run } = await aRunWithCalls(store, conversation);
    await park(store, run);
    const { effects } = await worker.accept(aMessage({ conversation, text: 'more', lane }));
    expect(effects.wakes).toEqual([]);
    await store.write(addProcess, { id: unique('boot'), folder: 'f', ended: [holder] });
    expect(await isSwept(store, lane.key, 23 * hourMs)).toBe(false);
    expect(await worker.claim(lane.key)).toEqual({ kind: 'parked' });
  });

  it('resumes a parked run when its wait expires, and the model reads that nobody answered', async () => {
    const store = open();
    const { worker, lane, run } = await aRunWithCalls(store, unique('c'), {
      callIds: ['1', '2', '3'],
      started: ['1', '2'],
    });
    expect(await park(store, run, 42_000, 0)).toMatchObject({ kind: 'parked' });
    expect(await isSwept(store, lane.key)).toBe(true);
    const resumed = await worker.claimRun(lane.key);
    expect(resumed).toMatchObject({ runId: run.runId, isResumed: true, workedMs: 42_000 });
    const left = await store.write(recoverRun, held(resumed));
    expect(left.map(({ state }) => state)).toEqual(['done', 'done', 'pending']);
    expect(await resultsIn(store, run)).toEqual([waitExpired, waitExpired]);
    expect(await attemptsOf(store, run.runId)).toBe(1);
    expect((await settle(store, run.runId)).settlement).toBe('settled-before');
  });

  it("accepts an answer after the wait has expired if the lane isn't claimed yet", async () => {
    const store = open();
    const { worker, lane, run } = await aRunWithCalls(store, unique('c'));
    await park(store, run, 1_000, 0);
    expect((await settle(store, run.runId)).settlement).toBe('settled');
    await store.write(recoverRun, held(await worker.claimRun(lane.key)));
    expect(await resultsIn(store, run)).toEqual(['approved']);
  });

  it('parks a run for 30 days at most, whatever the caller asks for', async () => {
    const store = open();
    const { lane, run } = await aRunWithCalls(store, unique('c'));
    await park(store, run, 1_000, 10_000 * 24 * hourMs);
    expect(await isSwept(store, lane.key, 29 * 24 * hourMs)).toBe(false);
    expect(await isSwept(store, lane.key, 31 * 24 * hourMs)).toBe(true);
  });

  it('resumes a run when its call is settled, under a new epoch, with attempts and clock unchanged', async () => {
    const store = open();
    const conversation = unique('c');
    const { worker, lane, run, messageId } = await aRunWithCalls(store, conversation);
    await park(store, run, 42_000);
    const settled = await settle(store, run.runId);
    expect(settled).toMatchObject({ settlement: 'settled', laneKey: lane.key });
    expect(settled.effects.wakes).toEqual([{ laneKey: lane.key, class: 'main', delayMs: 0 }]);
    expect((await store.read(readSweep, {})).lanes.map(({ laneKey }) => laneKey)).toContain(lane.key);
    const resumed = await worker.claimRun(lane.key);
    expect(resumed).toMatchObject({ runId: run.runId, isResumed: true, workedMs: 42_000 });
    expect(resumed.epoch).toBeGreaterThan(run.epoch + 1);
    expect(await store.write(recoverRun, held(resumed))).toEqual([{ callId: '1', messageId, state: 'done' }]);
    expect(await resultsIn(store, run)).toEqual(['approved']);
    expect(await attemptsOf(store, run.runId)).toBe(1);
  });

  it('lets a run park and resume any number of times without giving it up', async () => {
    const store = open();
    const callIds = ['1', '2', '3', '4', '5'];
    const { worker, lane, run, messageId } = await aRunWithCalls(store, unique('c'), {
      callIds,
      started: [],
    });
    let current = run;
    for (const callId of callIds) {
      await store.write(markToolStarted, { ...held(current), messageId, callId });
      await park(store, current);
      expect((await settle(store, run.runId, callId)).settlement).toBe('settled');
      current = await worker.claimRun(lane.key);
    }
    expect(await attemptsOf(store, run.runId)).toBe(1);
  });

  it('keeps a run parked until the last of its calls is settled, and starts no later call', async () => {
    const store = open();
    const { worker, lane, run } = await aRunWithCalls(store, unique('c'), {
      callIds: ['1', '2', '3'],
      started: ['1', '2'],
    });
    await park(store, run);
    const first = await settle(store, run.runId, '2', 'second');
    expect(first).toMatchObject({ settlement: 'settled', effects: { wakes: [] } });
    expect(await worker.claim(lane.key)).toEqual({ kind: 'parked' });
    expect((await settle(store, run.runId, '3')).settlement).toBe('not-started');
    expect((await settle(store, run.runId, '1', 'first')).effects.wakes).toHaveLength(1);
    const resumed = await worker.claimRun(lane.key);
    const left = await store.write(recoverRun, held(resumed));
    expect(left.map(({ state }) => state)).toEqual(['done', 'done', 'pending']);
    expect(await resultsIn(store, run)).toEqual(['first', 'second']);
  });

  it('settles a parked call once, and only by its own id', async () => {
    const store = open();
    const { run, worker, lane, messageId } = await aRunWithCalls(store, unique('c'));
    await park(store, run);
    expect((await settle(store, run.runId, 'other')).settlement).toBe('unknown-call');
    expect((await settle(store, 'no run')).settlement).toBe('unknown-call');
    expect((await settle(store, run.runId)).settlement).toBe('settled');
    const again = await settle(store, run.runId, '1', 'denied');
    expect(again).toMatchObject({ settlement: 'settled-before', effects: { wakes: [] } });
    const resumed = await worker.claimRun(lane.key);
    await store.write(storeToolResults, { ...held(resumed), messageId, results: [answerOf('1', 'late')] });
    expect(await resultsIn(store, run)).toEqual(['approved']);
    await worker.answer(resumed, 'done');
    expect((await settle(store, run.runId)).settlement).toBe('settled-before');
  });

  it.each(['stop', 'new', 'interrupt'] as const)(
    "wakes a parked run to end on %s, after which it can't be settled",
    async (by) => {
      const store = open();
      const conversation = unique('c');
      const mode = by === 'interrupt' ? 'interrupt' : 'steer';
      const { worker, lane, run } = await aRunWithCalls(store, conversation, { mode });
      await park(store, run);
      const { effects } = await worker.accept(cancelling(by, conversation, lane));
      expect(effects.wakes).toContainEqual({ laneKey: lane.key, class: 'main', delayMs: 0 });
      expect((await settle(store, run.runId)).settlement).toBe('cancelled');
      const reason = { stop: 'stop', new: 'reset', interrupt: 'interrupt' }[by];
      const ending = await worker.claimRun(lane.key);
      expect(ending).toMatchObject({ runId: run.runId, cancelReason: reason });
      expect(await store.write(recoverRun, held(ending))).toMatchObject([{ callId: '1', state: 'started' }]);
      await end(store, ending, reason);
      expect((await settle(store, run.runId)).settlement).not.toBe('settled');
      await drain(worker, lane.key);
      const { inbox, openRuns } = await readLane(store, lane.key);
      expect(openRuns).toBe(0);
      const ended = {
        stop: ['cancelled'],
        new: ['cancelled', 'answered'],
        interrupt: ['cancelled', 'answered'],
      };
      expect(inbox.map(({ outcome }) => outcome)).toEqual(ended[by]);
    },
  );

  it('keeps a settlement that races with parking', async () => {
    const store = open();
    for (let round = 0; round < rounds; round += 1) {
      const { worker, lane, run } = await aRunWithCalls(store, unique('c'));
      const [outcome, settled] = await Promise.all([park(store, run), settle(store, run.runId)]);
      expect(settled.settlement).toBe('settled');
      expect(settled.effects.wakes).toHaveLength(outcome.kind === 'parked' ? 1 : 0);
      expect(await worker.claimRun(lane.key)).toMatchObject({ runId: run.runId });
      expect(await resultsIn(store, run)).toEqual(['approved']);
    }
  });

  it("wakes a parked run to end when its person's access is revoked", async () => {
    const store = open();
    const conversation = unique('c');
    const [sender, ref] = [unique('guest'), unique('test:guest')];
    await beside.sql(`insert into people (account, "peerId", ref, name, role, "approvedAt", "approvedBy")
      values ('${account}', '${sender}', '${ref}', 'Guest', 'user', 1, 'console')`);
    const { worker, lane, run } = await aRunWithCalls(store, conversation, { sender });
    await park(store, run);
    const { effects } = await store.write(revokeOnConsole, { ref, by: atConsole });
    const { cancels, wakes } = effects;
    expect(cancels).toEqual([{ runId: run.runId, reason: 'revoked' }]);
    expect(wakes).toEqual([{ laneKey: lane.key, class: 'main', delayMs: 0 }]);
    expect(await worker.claimRun(lane.key)).toMatchObject({ runId: run.runId, cancelReason: 'revoked' });
  });

  it('keeps a /stop that races with parking', async () => {
    const store = open();
    for (let round = 0; round < rounds; round += 1) {
      const conversation = unique('c');
      const { worker, lane, run } = await aRunWithCalls(store, conversation);
      const stop = aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false });
      await Promise.all([park(store, run), worker.accept(stop)]);
      expect(await worker.claimRun(lane.key)).toMatchObject({ runId: run.runId, cancelReason: 'stop' });
    }
  });

  it('finds other lanes in the sweep, however many parked runs there are', async () => {
    const store = open();
    const { run, lane } = await aRunWithCalls(store, unique('c'));
    await park(store, run);
    await beside.sql(manyLikeIt(lane.key, 2_000));
    await settle(store, run.runId);
    const { lanes } = await store.read(readSweep, {});
    expect(lanes.filter(({ laneKey }) => laneKey.startsWith('parked-'))).toEqual([]);
    expect(lanes.map(({ laneKey }) => laneKey)).toContain(lane.key);
  });
});

function cancelling(by: 'stop' | 'new' | 'interrupt', conversation: string, lane: ReturnType<typeof aLane>) {
  if (by === 'stop') {
    const stop = aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false });
    if (stop.decision.kind !== 'command') throw new Error('no command');
    return { ...stop, decision: { ...stop.decision, lane } };
  }
  const message = aMessage({ conversation, text: by === 'new' ? '/new' : 'no, this', lane });
  if (by === 'interrupt' || message.decision.kind !== 'accept') return message;
  const { item } = message.decision;
  const content = { ...item.content, command: newCommand };
  return {
    ...message,
    decision: { ...message.decision, item: { ...item, kind: 'command' as const, content } },
  };
}

async function drain(worker: ReturnType<typeof aWorker>, laneKey: string): Promise<void> {
  for (;;) {
    const claimed = await worker.claim(laneKey);
    if (claimed.kind === 'run') await worker.answer(claimed.run, 'ok');
    else if (claimed.kind !== 'again') return;
  }
}

function end(store: Store, run: ClaimedRun, reason: string) {
  return endWithout(store, run, reason, { outcome: 'cancelled', mayKeepLane: true });
}

function attemptsOf(store: Store, runId: string): Promise<number> {
  return store.read(attempts, runId);
}

const attempts: StoreQuery<string, number> = {
  query: 'attemptsOf',
  run: async (tx, id) =>
    (await tx.db.selectFrom('runs').select('attempts').where('id', '=', id).executeTakeFirstOrThrow())
      .attempts,
};

/** Returns a statement that inserts `count` lanes parked like this one. */
function manyLikeIt(laneKey: string, count: number): string {
  const same = ['class', 'agentId', 'chatKind', 'sessionId', 'epoch', 'leaseUntil', 'nextSeq', 'mode']
    .concat(['debounceMs', 'quietMs', 'cap', 'drop', 'lastActivityAt'])
    .map((column) => `"${column}"`)
    .join(', ');
  return `with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
    insert into lanes (key, "runId", ${same})
    select 'parked-' || n, 'run-' || n, ${same} from lanes, numbers where key = '${laneKey}'`;
}
