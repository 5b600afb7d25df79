import { expect, it, onTestFinished } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import type { Store, StoreQuery } from '../../../src/store/base/command.ts';
import { findChild, readChildren } from '../../../src/store/children/child.ts';
import { isClassBusy } from '../../../src/store/children/class-room.ts';
import { steerChild, stopChild } from '../../../src/store/children/operate-child.ts';
import { spawnChild } from '../../../src/store/children/spawn-child.ts';
import { handOver, renewLeases } from '../../../src/store/lanes/leases.ts';
import { readSweep } from '../../../src/store/lanes/sweep.ts';
import { readHistory } from '../../../src/store/reads/read-transcript.ts';
import { readUsage } from '../../../src/store/reads/read-usage.ts';
import { aCommand, aMessage, endWithout, holder, unique } from '../builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker, fenceOf, tend } from '../family.ts';

function raise(): never {
  throw new Error('test error: it is not there');
}

/** Reads everything that the model has read in the session. */
async function readText(store: Store, sessionId: string): Promise<string> {
  const history = await store.read(readHistory, { sessionId });
  return history.flatMap(({ parts }) => parts.map((part) => JSON.stringify(part))).join('\n');
}

const costOf: StoreQuery<{ readonly sessionId: string }, number> = {
  query: 'costOf',
  run: async (tx, { sessionId }) => {
    const { cost } = await tx.db
      .selectFrom('sessions')
      .select('cost')
      .where('id', '=', sessionId)
      .executeTakeFirstOrThrow();
    return cost;
  },
};

const endOf: StoreQuery<{ readonly sourceKey: string }, unknown> = {
  query: 'endOf',
  run: (tx, { sourceKey }) =>
    tx.db
      .selectFrom('inbox')
      .select(['outcome', 'outcomeReason'])
      .where('sourceKey', '=', sourceKey)
      .executeTakeFirst(),
};

describeEachDatabase('a sub-agent', (open, beside) => {
  const late = (childId: string, column: 'stopAt' | 'deadlineAt' | 'endedAt') =>
    beside.sql(`update children set "${column}" = 1 where id = '${childId}'`);
  const find = (childId: string) => open().read(findChild, { childId });

  it('runs a sub-agent in its own lane and session, and announces it to its parent once', async () => {
    const worker = aFamilyWorker(open());
    const { run, lane } = await worker.begin();
    const child = await worker.spawnOne(run, { over: { label: 'look' } });
    expect(child).toMatchObject({
      state: 'queued',
      depth: 1,
      parentSessionId: run.sessionId,
      treeId: run.runId,
    });
    await worker.answer(run, 'I have asked somebody.');
    const childRun = await worker.claimRun(child.laneKey);
    expect(childRun).toMatchObject({ sessionId: child.id, target: 'record', authority: run.authority });
    expect(await find(child.id)).toMatchObject({ state: 'running' });
    const { effects } = await worker.answer(childRun, 'All is well.');
    expect(effects.wakes.map(({ laneKey }) => laneKey)).toContain(lane.key);
    expect(await find(child.id)).toMatchObject({
      ...{ state: 'done', status: 'completed', told: 'lane', result: 'All is well.' },
      usage: { promptTokens: 120, completionTokens: 30, cost: 7 },
    });
    const next = await worker.claimRun(lane.key);
    expect(await readText(open(), next.sessionId)).toMatch(/Sub-agent \\"look\\".*completed.*All is well/s);
    await worker.answer(next, 'It is well.');
    expect(await worker.claim(lane.key)).toEqual({ kind: 'idle' });
  });

  it("lets an announcement join the parent's active run in every mode", async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin('followup');
    const child = await worker.spawnOne(run);
    await worker.answer(await worker.claimRun(child.laneKey), 'found');
    const { steers } = await worker.answer(run, 'so far');
    expect(steers).toHaveLength(1);
  });

  it('attaches a repeated spawning call to the same sub-agent, which counts once', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run, { callId: 'same', limits: { children: 1 } });
    const again = await open().write(
      spawnChild,
      worker.inputOf(run, { callId: 'same', limits: { children: 1 } }),
    );
    expect(again).toMatchObject({ kind: 'attached', child: { id: child.id } });
    expect(await open().read(readChildren, { sessionId: run.sessionId, limit: 10 })).toHaveLength(1);
  });

  it('refuses a sub-agent above each limit, with a reason that names the limit', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const refusal = async (limits: Parameters<typeof worker.spawn>[1]) => {
      const spawned = await worker.spawn(run, limits);
      return spawned.kind === 'refused' ? [spawned.reason, spawned.limit] : spawned.kind;
    };
    expect(await refusal({ limits: { depth: 0 } })).toEqual(['too_deep', 0]);
    expect(await refusal({})).toBe('spawned');
    expect(await refusal({ limits: { children: 1 } })).toEqual(['too_many_children', 1]);
    expect(await refusal({ limits: { nodes: 1 } })).toEqual(['tree_full', 1]);
    expect(await refusal({ limits: { lifetime: 1 } })).toEqual(['tree_exhausted', 1]);
    await beside.sql(`update trees set "deadlineAt" = 1 where id = '${run.runId}'`);
    expect(await refusal({})).toEqual(['tree_out_of_time', 3600]);
  });

  it('never exceeds the limit when many sub-agents are spawned at once', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const spawns = Array.from({ length: 12 }, (_, n) =>
      (n % 2 ? open() : other).write(spawnChild, worker.inputOf(run, { callId: `at once ${n}` })),
    );
    const kinds = (await Promise.all(spawns)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'spawned')).toHaveLength(5);
  });

  it('keeps sub-agents within the cap of their class, and wakes the next when one ends', async () => {
    const caps = { 'sub-1': 2 };
    const worker = aFamilyWorker(open(), { caps });
    const { run } = await worker.begin();
    // By now, no other test of this database has a child running.
    const children = [];
    for (let n = 0; n < 4; n++) children.push(await worker.spawnOne(run));
    const claims = await Promise.all(children.map(({ laneKey }) => worker.claim(laneKey)));
    const running = claims.flatMap((claim) => (claim.kind === 'run' ? [claim.run] : []));
    expect(running).toHaveLength(2);
    expect(claims.filter(({ kind }) => kind === 'full')).toHaveLength(2);
    const isBusy = (laneKey: string, name = 'sub-1') => open().read(isClassBusy, { laneKey, class: name });
    // A lane that waits for a place raises no alert.
    expect(await isBusy(children.at(-1)?.laneKey ?? '')).toBe(true);
    expect(await isBusy(run.laneKey, 'main')).toBe(false);
    const [first] = running;
    if (!first) throw new Error('test error');
    const { effects } = await worker.answer(first);
    const woken = effects.wakes.filter((wake) => wake.class === 'sub-1').map(({ laneKey }) => laneKey);
    expect(woken).toHaveLength(1);
    const claimed = await worker.claimRun(woken[0] ?? '');
    for (const each of [running[1], claimed]) if (each) await worker.answer(each);
    for (const { laneKey } of children) {
      const left = await worker.claim(laneKey);
      if (left.kind === 'run') await worker.answer(left.run);
    }
  });

  it("gives a waiting sub-agent's slot to the next one, and wakes nobody while the class is full", async () => {
    const caps = { 'sub-4': 1 };
    const worker = aFamilyWorker(open(), { caps });
    const family = [(await worker.begin()).run];
    // No other test of this database has children at this depth.
    for (const depth of [0, 1, 2]) {
      const child = await worker.spawnOne(family[depth] ?? raise());
      family.push(await worker.claimRun(child.laneKey));
    }
    const parent = family.at(-1) ?? raise();
    const [first, second] = [await worker.spawnOne(parent), await worker.spawnOne(parent)];
    const found = async () => (await open().read(readSweep, { caps })).lanes.map(({ laneKey }) => laneKey);
    const wakeOf = ({ laneKey }: { laneKey: string }) => ({ laneKey, class: 'sub-4', delayMs: 0 });
    expect(await found()).toEqual(expect.arrayContaining([first.laneKey, second.laneKey]));
    const firstRun = await worker.claimRun(first.laneKey);
    expect(await found()).not.toContain(second.laneKey);
    const awaited = await worker.spawnOne(firstRun, { mode: 'wait' });
    expect((await worker.park(firstRun)).effects.wakes).toEqual([wakeOf(second)]);
    const secondRun = await worker.claimRun(second.laneKey);
    await worker.answer(await worker.claimRun(awaited.laneKey));
    // Its result has arrived, and it continues once a place is free again.
    expect((await worker.answer(secondRun)).effects.wakes).toContainEqual(wakeOf(first));
    const resumed = await worker.claimRun(first.laneKey);
    const announced = await worker.spawnOne(resumed);
    await worker.answer(resumed);
    const third = await worker.claimRun((await worker.spawnOne(parent)).laneKey);
    await worker.answer(await worker.claimRun(announced.laneKey));
    expect(await worker.claim(first.laneKey)).toEqual({ kind: 'full' });
    // An announcement also waits for a place.
    expect((await worker.answer(third)).effects.wakes).toContainEqual(wakeOf(first));
    await worker.answer(await worker.claimRun(first.laneKey));
    for (const run of family.toReversed()) await worker.answer(run);
  });

  it('settles the call that waits for a sub-agent and wakes its parked parent', async () => {
    const worker = aFamilyWorker(open());
    const { run, lane } = await worker.begin();
    const child = await worker.spawnOne(run, { mode: 'wait' });
    expect(await worker.park(run)).toMatchObject({ kind: 'parked' });
    const { effects } = await worker.answer(await worker.claimRun(child.laneKey), 'the answer');
    expect(effects.wakes.map(({ laneKey }) => laneKey)).toContain(lane.key);
    expect(await find(child.id)).toMatchObject({ state: 'done', told: 'tool' });
    const resumed = await worker.claimRun(lane.key);
    expect(resumed).toMatchObject({ runId: run.runId, isResumed: true });
    expect(await readText(open(), run.sessionId)).toContain('the answer');
    await worker.answer(resumed);
    expect(await worker.claim(lane.key)).toEqual({ kind: 'idle' });
  });

  it('announces a sub-agent if the run that waited for it has ended', async () => {
    const worker = aFamilyWorker(open());
    const { run, lane } = await worker.begin();
    const child = await worker.spawnOne(run, { mode: 'wait' });
    await worker.answer(run, 'I did not wait.');
    await worker.answer(await worker.claimRun(child.laneKey), 'late');
    expect(await find(child.id)).toMatchObject({ told: 'lane' });
    await worker.answer(await worker.claimRun(lane.key));
  });

  it('charges a sub-agent to every session above it, even for failed runs', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run);
    await worker.answer(run);
    const childRun = await worker.claimRun(child.laneKey);
    const grandchild = await worker.spawnOne(childRun);
    await worker.answer(childRun, 'wait for it');
    expect(await find(child.id)).toMatchObject({ state: 'running' });
    await worker.answer(await worker.claimRun(grandchild.laneKey));
    await worker.fail(await worker.claimRun(child.laneKey));
    expect(await find(child.id)).toMatchObject({ status: 'failed', result: 'wait for it' });
    expect(await open().read(costOf, { sessionId: child.id })).toBe(14);
    expect(await open().read(costOf, { sessionId: run.sessionId })).toBe(21);
    const belowOf = async ({ sessionId }: { sessionId: string }) =>
      (await open().read(readUsage, { sessionId }))?.childrenCost;
    expect([await belowOf(run), await belowOf(childRun)]).toEqual([14, 7]);
  });

  it('counts a sub-agent in the tree of the run that spawned it, even if an announcement spawns it', async () => {
    const worker = aFamilyWorker(open());
    const { run, lane } = await worker.begin();
    const child = await worker.spawnOne(run);
    await worker.answer(run);
    await worker.answer(await worker.claimRun(child.laneKey));
    const announced = await worker.claimRun(lane.key);
    expect(await worker.spawnOne(announced)).toMatchObject({ treeId: run.runId });
    expect(await worker.spawn(announced, { limits: { lifetime: 2 } })).toMatchObject({
      reason: 'tree_exhausted',
    });
    await worker.answer(announced);
  });

  it('stops a sub-agent and everything below it on /stop, and tells nobody', async () => {
    const worker = aFamilyWorker(open());
    const { run, lane, conversation } = await worker.begin();
    const active = await worker.spawnOne(run);
    const queued = await worker.spawnOne(run);
    await worker.answer(run);
    const activeRun = await worker.claimRun(active.laneKey);
    const below = await worker.spawnOne(activeRun);
    const { effects } = await worker.accept(
      aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }),
    );
    expect(effects.cancels).toEqual([{ runId: activeRun.runId, reason: 'stop' }]);
    for (const { id } of [queued, below])
      expect(await find(id)).toMatchObject({ state: 'done', status: 'stopped', told: 'none' });
    await worker.fail(activeRun, 'stop');
    expect(await find(active.id)).toMatchObject({ state: 'done', status: 'stopped', told: 'none' });
    expect(await worker.claim(lane.key)).toEqual({ kind: 'idle' });
  });

  it('stops sub-agents in both lanes of a person with linked accounts', async () => {
    const worker = aFamilyWorker(open());
    const [here, former] = [await worker.begin(), await worker.begin()];
    const children = [];
    for (const { run } of [here, former]) {
      const child = await worker.spawnOne(run);
      children.push(child, await worker.spawnOne(await worker.claimRun(child.laneKey)));
    }
    const linked = { people: [], formerLane: former.lane.key };
    await worker.accept(
      aCommand(here.conversation, { kind: 'stop', isPrivileged: true, isAll: false, linked }),
    );
    for (const { id } of children) expect(await find(id)).toMatchObject({ stopAt: expect.any(Number) });
  });

  it("doesn't let an ended run spawn a sub-agent", async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    await endWithout(open(), run, 'timeout');
    await expect(open().write(spawnChild, worker.inputOf(run, {}))).rejects.toThrow('has ended');
    expect(await open().read(readChildren, { sessionId: run.sessionId, limit: 10 })).toEqual([]);
  });

  it("doesn't let a run that was asked to stop spawn a sub-agent", async () => {
    const worker = aFamilyWorker(open());
    const { run, conversation } = await worker.begin();
    const known = await worker.spawnOne(run, { callId: 'before the stop' });
    await worker.accept(aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }));
    await expect(open().write(spawnChild, worker.inputOf(run, {}))).rejects.toMatchObject({
      code: 'invalid_input',
    });
    // A repeated call finds its child, which has been stopped by now.
    const repeated = worker.inputOf(run, { callId: 'before the stop' });
    expect(await open().write(spawnChild, repeated)).toMatchObject({
      kind: 'attached',
      child: { id: known.id },
    });
    expect(await open().read(readChildren, { sessionId: run.sessionId, limit: 10 })).toMatchObject([
      { id: known.id, state: 'done', status: 'stopped' },
    ]);
  });

  it('stops or refuses a sub-agent that is spawned at the same moment as /stop', async () => {
    const other = await beside.open();
    onTestFinished(() => other.close());
    const worker = aFamilyWorker(open());
    for (let round = 0; round < 12; round++) {
      const { run, conversation } = await worker.begin();
      const child = await worker.spawnOne(run);
      await worker.answer(run);
      const childRun = await worker.claimRun(child.laneKey);
      const stop = worker.accept(aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }));
      const spawn = other.write(spawnChild, worker.inputOf(childRun, {})).catch(() => undefined);
      await Promise.all([stop, spawn]);
      const family = await open().read(readChildren, { sessionId: run.sessionId, limit: 10 });
      expect(family.filter(({ state, stopAt }) => state !== 'done' && stopAt === undefined)).toEqual([]);
      await worker.fail(childRun, 'stop');
    }
  });

  it("adds an announcement to a lane at its cap, and doesn't drop it for later messages", async () => {
    const worker = aFamilyWorker(open());
    const { run, lane, conversation } = await worker.begin('followup', { cap: 1, drop: 'old' });
    const child = await worker.spawnOne(run);
    await worker.answer(await worker.claimRun(child.laneKey), 'found');
    for (const text of ['first', 'second']) await worker.accept(aMessage({ conversation, text, lane }));
    // The announcement joins the active run; the message gets its own.
    expect((await worker.answer(run)).steers).toHaveLength(1);
    await worker.answer(run);
    await worker.answer(await worker.claimRun(lane.key));
    const read = await readText(open(), run.sessionId);
    expect(read).toContain('found');
    expect(read).toContain('second');
    expect(read).not.toContain('first');
  });

  it("fences off a sub-agent that doesn't stop in time", async () => {
    const worker = aFamilyWorker(open());
    const { run, conversation } = await worker.begin();
    const child = await worker.spawnOne(run);
    await worker.answer(run);
    const childRun = await worker.claimRun(child.laneKey);
    await worker.accept(aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false }));
    await late(child.id, 'stopAt');
    expect(await tend(open())).toContain(child.id);
    expect(await find(child.id)).toMatchObject({ state: 'done', status: 'stopped' });
    await expect(worker.answer(childRun)).rejects.toSatisfy((error) => hasCode(error, 'stale_epoch'));
  });

  it("stops a sub-agent on /new and when its parent's run fails", async () => {
    const worker = aFamilyWorker(open());
    const first = await worker.begin();
    const queued = await worker.spawnOne(first.run);
    await worker.fail(first.run);
    expect(await find(queued.id)).toMatchObject({ status: 'stopped', told: 'none' });
    const second = await worker.begin();
    const active = await worker.spawnOne(second.run);
    await worker.answer(second.run);
    const activeRun = await worker.claimRun(active.laneKey);
    await worker.accept(
      aMessage({ conversation: second.conversation, text: '/new', item: { kind: 'command' } }),
    );
    await worker.claim(second.lane.key);
    await worker.fail(activeRun, 'stop');
    expect(await find(active.id)).toMatchObject({ status: 'stopped', told: 'none' });
    expect(await worker.claim(second.lane.key)).toEqual({ kind: 'idle' });
  });

  it("doesn't announce a sub-agent to the next session if a /new was waiting when it ended", async () => {
    const worker = aFamilyWorker(open());
    const { run, lane, conversation } = await worker.begin();
    const child = await worker.spawnOne(run);
    await worker.answer(run);
    const childRun = await worker.claimRun(child.laneKey);
    await worker.accept(aMessage({ conversation, text: '/new', item: { kind: 'command' } }));
    await worker.answer(childRun, 'found');
    expect(await find(child.id)).toMatchObject({ status: 'completed', told: 'lane' });
    await worker.claim(lane.key);
    expect(await worker.claim(lane.key)).toEqual({ kind: 'idle' });
    const announcement = { sourceKey: `child:${child.id}` };
    expect(await open().read(endOf, announcement)).toEqual({ outcome: 'cancelled', outcomeReason: 'reset' });
  });

  it('stops a sub-agent on request or at its deadline, and tells its parent', async () => {
    const worker = aFamilyWorker(open());
    const { run, lane } = await worker.begin();
    const asked = await worker.spawnOne(run);
    const slow = await worker.spawnOne(run);
    await worker.answer(run);
    expect(await open().write(stopChild, { childId: asked.id })).toMatchObject({
      kind: 'done',
      stopped: 1,
    });
    expect(await find(asked.id)).toMatchObject({ status: 'stopped', told: 'lane' });
    const slowRun = await worker.claimRun(slow.laneKey);
    await late(slow.id, 'deadlineAt');
    await tend(open());
    await worker.fail(slowRun, 'stop');
    expect(await find(slow.id)).toMatchObject({ status: 'timed-out', told: 'lane' });
    const told = await worker.claimRun(lane.key);
    await worker.answer(told);
    expect(await open().write(stopChild, { childId: slow.id })).toMatchObject({
      kind: 'ended',
    });
  });

  it('steers a sub-agent at its next boundary, and no longer once it has ended', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run);
    await worker.answer(run);
    const childRun = await worker.claimRun(child.laneKey);
    const steer = {
      childId: child.id,
      id: crypto.randomUUID(),
      text: 'faster',
      authority: 'owner',
      by: 'console',
    } as const;
    expect(await open().write(steerChild, steer)).toMatchObject({ kind: 'done' });
    expect((await worker.answer(childRun, 'so far')).steers).toHaveLength(1);
    await worker.answer(childRun, 'done');
    expect(await open().write(steerChild, { ...steer, id: 'other' })).toMatchObject({ kind: 'ended' });
  });

  it('ends a sub-agent as lost when its lane has no work left', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run);
    await worker.answer(run);
    await beside.sql(
      `update inbox set state = 'ended', outcome = 'cancelled' where "laneKey" = '${child.laneKey}'`,
    );
    await tend(open());
    expect(await find(child.id)).toMatchObject({ state: 'done', status: 'lost', told: 'lane' });
  });

  it('archives a sub-agent an hour after its end', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run);
    await worker.answer(await worker.claimRun(child.laneKey));
    await tend(open());
    expect((await find(child.id))?.archivedAt).toBeUndefined();
    await late(child.id, 'endedAt');
    await tend(open());
    expect((await find(child.id))?.archivedAt).toBeDefined();
  });

  it("doesn't renew a sub-agent's expired lease", async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run);
    const childRun = await worker.claimRun(child.laneKey);
    await beside.sql(`update lanes set "leaseUntil" = 1 where key = '${child.laneKey}'`);
    const renewal = { holder, leaseMs: 10_000, runs: [fenceOf(childRun)] };
    expect(await open().write(renewLeases, renewal)).toMatchObject({ lost: [childRun.runId] });
    await worker.answer(childRun);
  });

  it.runIf(beside.dialect === 'postgres')(
    "doesn't renew a sub-agent's lease that expires while its class is being counted",
    async () => {
      const worker = aFamilyWorker(open(), { caps: { 'sub-1': 100 } });
      const { run } = await worker.begin();
      const child = await worker.spawnOne(run);
      const childRun = await worker.claimRun(child.laneKey, 1_000);
      const mark = unique('counting');
      const lock = `select 1 from "laneClasses" where name = 'sub-1' for update`;
      const fails = (statement: string) =>
        beside.sql(statement).then(
          () => false,
          () => true,
        );
      const counting = fails(`${lock}; select pg_sleep(300) /* ${mark} */`);
      await expect.poll(() => fails(`${lock} nowait`)).toBe(true);
      const renewal = { holder, leaseMs: 600_000, runs: [fenceOf(childRun)] };
      const renewing = open().write(renewLeases, renewal);
      const renewed = renewing.then(() => true);
      const count = `select pid from pg_stat_activity where query like '%/* ${mark} */' and pid <> pg_backend_pid()`;
      const waits = `select 1 / count(*) from pg_stat_activity where (${count}) = any(pg_blocking_pids(pid))`;
      // Either it waits for the count, or it has ended without waiting.
      const isDecided = async () => !(await fails(waits)) || Promise.race([renewed, false]);
      await expect.poll(isDecided).toBe(true);
      expect(await Promise.race([renewed, false])).toBe(false);
      const isOver = `"leaseUntil" <= extract(epoch from clock_timestamp()) * 1000`;
      const over = `select 1 / count(*) from lanes where key = '${child.laneKey}' and not ${isOver}`;
      await expect.poll(() => fails(over)).toBe(true);
      await beside.sql(`select pg_terminate_backend(pid) from pg_stat_activity
      where query like '%/* ${mark} */' and pid <> pg_backend_pid()`);
      expect(await renewing).toMatchObject({ lost: [childRun.runId] });
      expect(await counting).toBe(true);
      await worker.answer(childRun);
    },
  );

  it('continues a sub-agent in another process after a handover', async () => {
    const worker = aFamilyWorker(open());
    const { run } = await worker.begin();
    const child = await worker.spawnOne(run);
    await open().write(handOver, fenceOf(await worker.claimRun(child.laneKey)));
    const resumed = await aFamilyWorker(open(), { name: 'boot-2' }).claimRun(child.laneKey);
    expect(resumed).toMatchObject({ isResumed: true });
    await worker.answer(resumed);
    expect(await find(child.id)).toMatchObject({ status: 'completed' });
  });
});
