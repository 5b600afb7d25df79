import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { hasCode } from '../../../src/contracts/errors.ts';
import type { Store, StoreQuery, Tx } from '../../../src/store/base/command.ts';
import type { Child } from '../../../src/store/children/child.ts';
import { steerChild, stopChild } from '../../../src/store/children/operate-child.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { releaseFailedRun } from '../../../src/store/lanes/leases.ts';
import { holds } from '../../support/holds.ts';
import { isLong } from '../../support/long-run.ts';
import { aCommand, aMessage } from '../builders.ts';
import { type Beside, describeEachDatabase } from '../each-database.ts';
import { aFamilyWorker, fenceOf, tend } from '../family.ts';

/** The long run plays a fixed count, however long it takes; PROOF_SEED replays the same trees. */
const runs = isLong ? 1_000 : 60;
const seed = Number(process.env.PROOF_SEED ?? Date.now() % 1e9);
const processes = 3;

/** Smaller than the real limits, so that every case reaches them. */
const limits = { depth: 3, children: 3, nodes: 6, lifetime: 12 };
const caps = { 'sub-1': 2, 'sub-2': 2, 'sub-3': 1 };

type Step = { readonly what: number; readonly who: number; readonly which: number };

const plan: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({ what: fc.nat(99), who: fc.nat(processes - 1), which: fc.nat(1_000) }),
  { minLength: 20, maxLength: 70 },
);

describeEachDatabase('random trees of sub-agents with random ends', (open, beside) => {
  it('keeps the limits, ends each sub-agent once and tells each parent once', async () => {
    const stores = await Promise.all(Array.from({ length: processes }, () => beside.open()));
    onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
    let played = 0;
    let spawned = 0;
    const property = fc.asyncProperty(plan, async (steps) => {
      spawned += await playTree({ intake: open(), stores, beside, steps });
      played += 1;
    });
    await holds(property, {
      ...{ numRuns: runs, seed },
      ...(isLong ? { endOnFailure: true } : { interruptAfterTimeLimit: 12_000 }),
    });
    console.info(`${beside.dialect}, seed ${seed}: ${played} trees with ${spawned} children`);
  }, 7_200_000);
});

type Play = {
  /** The store of the process that people write to; the others only work. */
  readonly intake: Store;
  readonly stores: readonly Store[];
  readonly beside: Beside;
  readonly steps: readonly Step[];
};
type Worker = ReturnType<typeof aFamilyWorker>;
type Job = { readonly run: ClaimedRun; readonly worker: Worker; readonly store: Store };

/** Plays one tree and returns how many children it had. */
async function playTree({ intake: store, stores, beside, steps }: Play): Promise<number> {
  const gateway = aFamilyWorker(store, { name: 'gateway', caps });
  const workers = stores.map((each, n) => ({
    store: each,
    worker: aFamilyWorker(each, { name: `worker-${n}`, caps }),
  }));
  const [intake] = workers;
  if (!intake) throw new Error('test error: no worker');
  const { run, lane, conversation } = await gateway.begin();
  let jobs: readonly Job[] = [{ run, store, worker: gateway }];
  const roots: string[] = [run.sessionId];
  const drop = (job: Job) => {
    jobs = jobs.filter((each) => each !== job);
  };
  const claim = async (laneKey: string, { worker, store: own }: { worker: Worker; store: Store }) => {
    const claimed = await worker.claim(laneKey);
    if (claimed.kind !== 'run') return;
    // Its previous holder has lost it.
    jobs = [...jobs.filter((job) => job.run.laneKey !== laneKey), { run: claimed.run, worker, store: own }];
  };
  /** Ends the job; a run that was asked to stop always ends as stopped. */
  const end = async (job: Job, how: 'natural' | 'error') => {
    drop(job);
    const asked = job.run.cancelReason;
    const cut = how === 'error' ? 'error' : asked;
    if (cut !== undefined) return void (await job.worker.fail(job.run, cut));
    const { cancelReason, steers } = await job.worker.answer(job.run);
    if (cancelReason !== undefined) await job.worker.fail(job.run, cancelReason);
    else if (steers.length > 0) jobs = [...jobs, job];
  };
  const known = () => store.read(familyOf, { roots });
  let family = await known();

  const play = async ({ what, who, which }: Step): Promise<void> => {
    const me = workers[who] ?? intake;
    const job = jobs[which % Math.max(1, jobs.length)];
    const { children } = family;
    const child = children[which % Math.max(1, children.length)];
    const open = children.filter(({ state }) => state !== 'done');
    const laneKeys = [...open.map(({ laneKey }) => laneKey), lane.key];
    const laneKey = laneKeys[which % laneKeys.length] ?? lane.key;
    if (what < 38) {
      if (job) await job.worker.spawn(job.run, { limits, mode: which % 3 === 0 ? 'wait' : 'announce' });
    } else if (what < 68) await Promise.all(workers.map((each) => claim(laneKey, each)));
    else if (what < 76) {
      if (job) await end(job, 'natural');
    } else if (what < 78) {
      if (job) await end(job, 'error');
    } else if (what < 83) {
      if (job) drop(job);
      if (job) await job.worker.park(job.run);
    } else if (what < 88) {
      // Its process dies: the lease expires, and the next claim resumes the run.
      if (job) drop(job);
      if (job) await job.store.write(releaseFailedRun, { ...fenceOf(job.run), pauseMs: 0 });
    } else if (what < 91) {
      const steer = { id: crypto.randomUUID(), text: 'more', authority: 'owner', by: 'console' } as const;
      if (child) await store.write(steerChild, { childId: child.id, ...steer });
    } else if (what < 93) {
      if (child) await store.write(stopChild, { childId: child.id });
    } else if (what < 95) {
      const stopping = aCommand(conversation, { kind: 'stop', isPrivileged: true, isAll: false });
      const spawning = job?.worker.spawn(job.run, { limits });
      await Promise.all([gateway.accept(stopping), spawning?.catch(ignoreLost)]);
    } else if (what < 97) {
      await gateway.accept(aMessage({ conversation, text: '/new', item: { kind: 'command' } }));
    } else if (what < 98) {
      await gateway.accept(aMessage({ conversation, text: 'again' }));
    } else {
      await beside.sql(`update children set "stopAt" = 1 where "stopAt" is not null and state <> 'done'`);
      await tend(me.store);
    }
  };

  for (const step of steps) {
    await play(step).catch(ignoreLost);
    for (const { sessionId } of jobs.map((job) => job.run))
      if (!roots.includes(sessionId)) roots.push(sessionId);
    family = await known();
    checkLimits(family);
  }
  // Everything comes to rest: whatever may run finishes, and the sweep does its part.
  for (let round = 0; round < 200; round++) {
    for (const job of jobs) await end(job, 'natural').catch(ignoreLost);
    const { children, isDone } = await known();
    if (isDone && jobs.length === 0 && round > 2) break;
    for (const laneKey of [lane.key, ...children.map((child) => child.laneKey)]) await claim(laneKey, intake);
    // No wait outlasts the test.
    await beside.sql(`update lanes set "leaseUntil" = 1 where holder is null and "leaseUntil" > 1`);
    await beside.sql(`update children set "stopAt" = 1 where "stopAt" is not null and state <> 'done'`);
    await tend(store);
  }
  const rest = await known();
  checkLimits(rest);
  checkRest(rest);
  return rest.children.length;
}

/** Ignores that a run was lost to another holder or asked to stop, and so can't continue; nothing else may fail. */
function ignoreLost(error: unknown): void {
  if (!hasCode(error, 'stale_epoch') && !hasCode(error, 'invalid_input')) throw error;
}

type Family = Awaited<ReturnType<typeof readFamily>>;

const familyOf: StoreQuery<{ readonly roots: readonly string[] }, Family> = {
  query: 'familyOf',
  run: (tx, { roots }) => readFamily(tx, roots),
};

/** Reads all children below the roots' sessions and their rows; no case ever sees another's. */
async function readFamily(tx: Tx, roots: readonly string[]) {
  const found = new Map<string, Child>();
  for (let above = roots; above.length > 0; ) {
    const below = tx.db.selectFrom('children').selectAll().where('parentSessionId', 'in', above);
    const level = await below.orderBy('createdAt').orderBy('id').execute();
    // A child's run may be a root too.
    above = level.map(({ id }) => id).filter((id) => !found.has(id));
    for (const child of level) found.set(child.id, child);
  }
  const children = [...found.values()];
  const ids = new Set([...roots, ...found.keys()]);
  const treeIds = [...new Set(children.map(({ treeId }) => treeId)), ''];
  const trees = await tx.db.selectFrom('trees').selectAll().where('id', 'in', treeIds).execute();
  const sessions = await tx.db
    .selectFrom('sessions')
    .select(['id', 'cost'])
    .where('id', 'in', [...ids])
    .execute();
  const calls = await tx.db
    .selectFrom('modelCalls')
    .select(['sessionId', 'cost'])
    .where('sessionId', 'in', [...ids])
    .execute();
  const announced = await tx.db
    .selectFrom('inbox')
    .select(['sourceKey', 'state'])
    .where('sourceKey', 'in', [...children.map(({ id }) => `child:${id}`), ''])
    .execute();
  const results = await tx.db
    .selectFrom('toolCalls')
    .select(['runId', 'callId', 'result'])
    .where('runId', 'in', [...children.map(({ parentRunId }) => parentRunId), ''])
    .where('state', '=', 'done')
    .execute();
  const leases = await tx.db
    .selectFrom('lanes')
    .select('class')
    .where('class', 'like', 'sub-%')
    .where('runId', 'is not', null)
    .where('holder', 'is not', null)
    .where('leaseUntil', '>', Date.now())
    .execute();
  const isDone = children.every(({ state }) => state === 'done');
  return { children, trees, sessions, calls, announced, results, leases, isDone };
}

function checkLimits({ children, trees, leases }: Family): void {
  const live = children.filter(({ state }) => state !== 'done');
  for (const { parentSessionId } of live)
    expect(live.filter((child) => child.parentSessionId === parentSessionId).length).toBeLessThanOrEqual(
      limits.children,
    );
  for (const { id, live: counted, total } of trees) {
    expect(counted).toBe(live.filter(({ treeId }) => treeId === id).length);
    expect(counted).toBeLessThanOrEqual(limits.nodes);
    expect(total).toBeLessThanOrEqual(limits.lifetime);
  }
  for (const { depth } of children) expect(depth).toBeLessThanOrEqual(limits.depth);
  for (const [name, cap] of Object.entries(caps))
    expect(leases.filter((lane) => lane.class === name).length).toBeLessThanOrEqual(cap);
}

function checkRest({ children, trees, sessions, calls, announced, results }: Family): void {
  for (const { id, state, told, status, parentRunId, parentCallId } of children) {
    const items = announced.filter(({ sourceKey }) => sourceKey === `child:${id}`).length;
    const result = results.find(
      ({ runId, callId }) => runId === parentRunId && callId === parentCallId,
    )?.result;
    const isInCall = result?.includes(`Sub-agent ${id}`) ?? false;
    expect({ id, state, items, isInCall, told }).toEqual({
      ...{ id, state: 'done', told },
      ...{ items: told === 'lane' ? 1 : 0, isInCall: told === 'tool' },
    });
    expect(status).not.toBeNull();
  }
  for (const { live } of trees) expect(live).toBe(0);
  const spent = (sessionId: string): number =>
    calls.filter((call) => call.sessionId === sessionId).reduce((sum, { cost }) => sum + cost, 0) +
    children
      .filter(({ parentSessionId }) => parentSessionId === sessionId)
      .reduce((sum, { id }) => sum + spent(id), 0);
  for (const { id, cost } of sessions) expect({ id, cost }).toEqual({ id, cost: spent(id) });
}
