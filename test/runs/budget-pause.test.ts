import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import type { Clock } from '../../src/contracts/clock.ts';
import { ParleyError } from '../../src/contracts/errors.ts';
import type { AgentId } from '../../src/contracts/ids.ts';
import type { ModelEvent } from '../../src/contracts/model.ts';
import type { Authority } from '../../src/contracts/outcome.ts';
import { createInboundPolicy } from '../../src/inbound/inbound-policy.ts';
import { type BudgetSettings, createBudgetRules } from '../../src/models/budget-rules.ts';
import { createDemoProvider } from '../../src/models/demo.ts';
import { createRoomWaker } from '../../src/queue/room-waker.ts';
import { settingsApplier } from '../../src/roles/apply-settings.ts';
import { createRunBudgets } from '../../src/runs/call-ledger.ts';
import { createLaneDriver } from '../../src/runs/drive-lane.ts';
import { executeRun, type RunDeps } from '../../src/runs/execute-run.ts';
import { identityLinksFrom } from '../../src/sessions/identities.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { readSweep } from '../../src/store/lanes/sweep.ts';
import type { BudgetLimit } from '../../src/store/money/budget.ts';
import { readActivity } from '../../src/store/reads/read-activity.ts';
import { readContext } from '../../src/store/reads/read-transcript.ts';
import { readPayer } from '../../src/store/reads/read-usage.ts';
import { resumeWithRoom } from '../../src/store/waits/budget-waits.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { aTool } from '../agent/support/builders.ts';
import { manualClock } from '../agent/support/manual-clock.ts';
import { callsTools, type Play, says, scriptedModel } from '../agent/support/scripted-model.ts';
import { until } from '../e2e/until.ts';
import { onlyModel } from '../models/only-model.ts';
import { aConversation } from '../store/a-conversation.ts';
import { aCommand, aLane, aMessage, aRoute, aWorker, demoOnly, unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { aFamilyWorker } from '../store/family.ts';
import { readLane } from '../store/lane-at-rest.ts';
import { silentLog } from '../support/silent-log.ts';
import { runDeps, someActiveRuns, untilDone } from './run-builders.ts';
import { saidIn } from './said-in.ts';

/** An answer of 1,000 tokens may cost 10,000 micro-dollars, a prompt at least 4,000. */
const prices = { input: 2e6, output: 10e6, cacheRead: 2e6, cacheWrite: 2e6 };
const dear = 12_000;

type Beginning = {
  readonly authority?: Authority;
  readonly text?: string;
  /** The model's context window, tokens. */
  readonly window?: number;
  readonly clock?: Clock;
  readonly freedRoom?: () => void;
};

const costing = (events: readonly ModelEvent[], cost: number): readonly ModelEvent[] =>
  events.map((event) => (event.type === 'complete' ? { ...event, cost } : event));

describeEachDatabase('a run whose budget has no room', (open, { sql }) => {
  const depsFor = (
    plays: readonly Play[],
    budgets: BudgetSettings['budgets'],
    {
      holder,
      window = 200_000,
      clock = systemClock,
      freedRoom = () => undefined,
    }: Pick<Beginning, 'window' | 'clock' | 'freedRoom'> & { readonly holder: string },
  ) => {
    const model = scriptedModel(...plays);
    const active = someActiveRuns(open(), holder);
    onTestFinished(() => active.close());
    const ran: string[] = [];
    const act = aTool('act', { execute: async () => ({ text: `acted ${ran.push('act')}` }) });
    const demo = createDemoProvider({ clock: systemClock });
    const info = { ...demo.model(), contextWindow: window, answerTokens: 1_000, prices };
    const settings = { agents: [], defaultAgent: 'main' as AgentId, timeZone: 'UTC' };
    const deps: RunDeps = {
      ...runDeps(open(), { active, model, tools: [act] }),
      clock,
      freedRoom,
      models: onlyModel({ ...demo, stream: model.stream, model: () => info }),
      budgets: createRunBudgets({
        store: open(),
        clock,
        rules: createBudgetRules({ ...settings, budgets }),
        policy: { access: { owners: new Set() }, identityLinks: identityLinksFrom({}) },
      }),
    };
    return { deps, model, ran };
  };

  /** Starts one lane with one message, and a process that works it. */
  const begin = async (
    plays: readonly Play[],
    budgets: BudgetSettings['budgets'],
    { authority = 'owner', text = 'go', ...scene }: Beginning = {},
  ) => {
    const holder = unique('boot');
    const { deps, model, ran } = depsFor(plays, budgets, { holder, ...scene });
    const { conversation, laneKey, worker, say } = aConversation(open());
    const driver = createLaneDriver({
      ...deps,
      holder,
      wakes: { wake: () => undefined, close: async () => undefined },
      leaseMs: 10_000,
      maxAttempts: 3,
      redact: (text) => text,
      turnModels: demoOnly,
      maxRuns: 5,
      maxHoldMs: 60_000,
      execute: (run, options) => executeRun(deps, run, options),
    });
    await say(text, { item: { authority } });
    const drive = () => driver.drive(laneKey, new AbortController().signal);
    const parked = async () => {
      const { run } = await open().read(readActivity, { laneKey });
      return run?.waitsFor === undefined ? undefined : { runId: run.runId, reason: run.waitsFor };
    };
    return {
      ...{ laneKey, worker, conversation, model, ran, drive, parked },
      said: () => open().read(saidIn, conversation),
      outcomes: async () => (await readLane(open(), laneKey)).inbox.map(({ outcome }) => outcome),
      raise: async (limit: number) => {
        const { runId = '' } = (await parked()) ?? {};
        const { sessionId } = await open().read(readPayer, { runId });
        const budget = { scope: 'session', key: `session:${sessionId}`, limit } as const;
        await worker.accept(raiseOrder(conversation, budget));
      },
      expire: () => sql(`update lanes set "leaseUntil" = 0 where key = '${laneKey}'`),
      waitMs: () => open().read(waitIn, laneKey),
    };
  };

  /** Resumes what a sweep finds room for, and returns its lanes. */
  const sweep = async () => {
    const { withRoom } = await open().read(readSweep, {});
    for (const run of withRoom) await open().write(resumeWithRoom, run);
    return withRoom.map(({ laneKey }) => laneKey);
  };

  it('pauses a run, says once how to raise its budget, and continues by itself when it is raised', async () => {
    const plays = [costing(callsTools({ id: '1', name: 'act' }), dear), says('done')];
    const run = await begin(plays, { session: 20_000 });
    await run.drive();
    expect(await run.parked()).toMatchObject({ reason: 'room in the session budget' });
    expect(await run.said()).toEqual([
      'The budget for this conversation is used up, so I’ve paused. Send /budget session and an amount in dollars to continue, or /stop.',
    ]);
    expect(await sweep()).toEqual([]);
    await run.raise(21_000);
    expect(await sweep(), 'raised by too little').toEqual([]);
    await run.raise(40_000);
    expect(await sweep()).toEqual([run.laneKey]);
    await run.drive();
    expect([run.model.requests.length, run.ran]).toEqual([2, ['act']]);
    expect(await run.outcomes()).toEqual(['answered']);
    expect((await run.said()).slice(1)).toEqual([
      'The budget for this conversation is now $0.0210. Paused requests need more than that.',
      'The budget for this conversation is now $0.0400. Paused requests continue.',
      'done',
    ]);
  });

  it('ends a paused run if nobody raises the budget in time, and continues it if there is room by then', async () => {
    const run = await begin([says('done')], { session: 20 });
    await run.drive();
    await run.expire();
    await run.drive();
    expect(await run.outcomes()).toEqual(['failed']);
    expect((await run.said()).at(-1)).toMatch(/^The budget for this conversation is used up, so I stopped\./);

    const lucky = await begin([says('done')], { session: 20 });
    await lucky.drive();
    await lucky.raise(40_000);
    await lucky.expire();
    await lucky.drive();
    expect(await lucky.outcomes()).toEqual(['answered']);
  });

  it('tries the budget of each new day at midnight until one has room', async () => {
    const minute = 60_000;
    const clock = manualClock(Date.UTC(2001, 4, 7, 23, 50));
    const gateway = 20_000;
    const spend = async () => (await begin([costing(says('first'), dear)], { gateway }, { clock })).drive();
    await spend();
    const run = await begin([says('done')], { gateway }, { clock });
    await run.drive();
    expect(await run.waitMs()).toBe(10 * minute);
    clock.advance(10 * minute);
    await spend();
    await run.expire();
    await run.drive();
    expect(await run.waitMs()).toBe(24 * 60 * minute);
    clock.advance(24 * 60 * minute);
    await run.expire();
    await run.drive();
    expect(await run.outcomes()).toEqual(['answered']);
    const paused = expect.stringMatching(/^The budget for .* is used up, so I’ve paused\./);
    expect(await run.said()).toEqual([paused, paused, 'done']);
  });

  it('pauses with the history intact if the budget has no room for the summary, and finishes both later', async () => {
    const usage = { inputTokens: 7_000, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const long = callsTools({ id: '1', name: 'act' }).map((event) =>
      event.type === 'complete' ? { ...event, usage, cost: dear } : event,
    );
    const text = 'word '.repeat(3_000);
    const run = await begin([long, says('done')], { session: 50_000 }, { window: 8_000, text });
    await run.drive();
    expect(await run.parked()).toMatchObject({ reason: 'room in the session budget' });
    expect(await run.said()).toEqual([expect.stringMatching(/ is used up, so I’ve paused\./)]);
    const { sessionId } = await open().read(readPayer, { runId: (await run.parked())?.runId ?? '' });
    const context = () => open().read(readContext, { sessionId });
    expect([(await context()).summary, run.model.requests.length]).toEqual([undefined, 1]);
    await run.raise(200_000);
    expect(await sweep()).toEqual([run.laneKey]);
    await run.drive();
    expect([run.model.requests.length, run.ran]).toEqual([2, ['act']]);
    expect((await context()).summary).toBeDefined();
    expect(await run.outcomes()).toEqual(['answered']);
  });

  it('ends a paused run on /stop without asking the model', async () => {
    const run = await begin([says('done')], { session: 20 });
    await run.drive();
    await run.worker.accept(aCommand(run.conversation, { kind: 'stop', isPrivileged: true, isAll: false }));
    await run.drive();
    expect([await run.outcomes(), run.model.requests.length]).toEqual([['cancelled'], 0]);
    expect((await run.said()).at(-1)).toBe('Stopped.');
  });

  it('ends a run at once if its budget is spent and there is no owner who could raise it', async () => {
    const run = await begin([says('done')], { session: 20 }, { authority: 'guest' });
    await run.drive();
    expect(await run.outcomes()).toEqual(['failed']);
    expect(await run.said()).toEqual([expect.stringMatching(/^The budget .* is used up, so I stopped\./)]);
  });

  it('waits silently for room reserved by another call, and continues when it is returned', async () => {
    const gate = Promise.withResolvers<void>();
    const slow: Play = async function* () {
      await gate.promise;
      yield* says('done');
    };
    const gateway = 20_000;
    const first = await begin([slow], { gateway });
    const working = first.drive();
    await until(() => first.model.requests.length === 1, { what: 'the first call is on its way' });
    const second = await begin([says('done')], { gateway }, { authority: 'guest' });
    await second.drive();
    expect([await second.said(), await sweep()]).toEqual([[], []]);
    gate.resolve();
    await working;
    expect(await sweep()).toEqual([second.laneKey]);
    await second.drive();
    expect(await second.outcomes()).toEqual(['answered']);
    expect(await second.said()).toEqual(['done']);
  });

  it('starts a call as soon as an earlier one returns its room, without waiting for the sweep', async () => {
    const budgets = { gateway: 20_000 };
    const lanes = new Map<string, () => Promise<unknown>>();
    const order: string[] = [];
    const driven: Promise<unknown>[] = [];
    const wake = (laneKey: string) => {
      const drive = lanes.get(laneKey);
      if (drive) driven.push(drive());
    };
    const rooms = createRoomWaker({
      store: open(),
      log: silentLog,
      start: ({ wakes }) => {
        for (const { laneKey } of wakes) wake(laneKey);
      },
    });
    const asked = (name: string): Play =>
      async function* () {
        order.push(name);
        yield* says(name);
      };
    const runs: Awaited<ReturnType<typeof begin>>[] = [];
    for (const name of Array.from({ length: 20 }, (_, at) => `run ${at}`)) {
      const run = await begin([asked(name)], budgets, { freedRoom: rooms.look });
      lanes.set(run.laneKey, run.drive);
      runs.push(run);
    }
    for (const { laneKey } of runs) wake(laneKey);
    await until(() => order.length === runs.length, { what: 'each run has made its call' });
    await until(async () => (await Promise.all(runs.map((run) => run.outcomes()))).flat().every(Boolean), {
      what: 'each run has ended',
    });
    await Promise.all(driven);
    expect(new Set(order).size).toBe(runs.length);
    expect((await Promise.all(runs.map((run) => run.outcomes()))).flat()).toEqual(runs.map(() => 'answered'));
  });

  it('uses the budget of the identity and the owners that a reload has configured', async () => {
    const config = loadConfig({ values: {}, unknown: [] }, '/nowhere');
    const policy = createInboundPolicy(config, textsFor('en'));
    const reload = settingsApplier({ config, texts: policy.texts }, { policy, gatewayRole: undefined });
    const rules = createBudgetRules({ ...config, budgets: { person: 1 } });
    const budgets = createRunBudgets({ store: open(), clock: systemClock, rules, policy });
    const [worker, conversation, ann] = [aWorker(open()), unique('c'), unique('ann')];
    await worker.accept(aMessage({ conversation, text: 'go', sender: ann }));
    const limits = budgets.limitsFor(await worker.claimRun(aLane(conversation).key));
    const keys = async () => (await limits()).map(({ key }) => key);
    expect([await keys(), await budgets.hasOwner()]).toEqual([
      [expect.stringContaining(`person:test:${ann}:`)],
      false,
    ]);
    reload({ ...config, identityLinks: { [`of-${ann}`]: [`test:${ann}`] }, owners: [`test:${ann}`] });
    expect([await keys(), await budgets.hasOwner()]).toEqual([
      [expect.stringContaining(`person:of-${ann}:`)],
      true,
    ]);
  });

  it('looks the budgets up again in the next attempt if the store was away', async () => {
    let isAway = true;
    const store: Pick<Store, 'read'> = {
      read: (query, input) =>
        isAway ? Promise.reject(new ParleyError('store_unavailable', 'away')) : open().read(query, input),
    };
    const rules = createBudgetRules({ budgets: { run: 1 }, agents: [], defaultAgent: 'main' as AgentId });
    const policy = { access: { owners: new Set<string>() }, identityLinks: identityLinksFrom({}) };
    const [worker, conversation] = [aWorker(open()), unique('c')];
    await worker.accept(aMessage({ conversation, text: 'go' }));
    const run = await worker.claimRun(aLane(conversation).key);
    const limits = createRunBudgets({ store, clock: systemClock, rules, policy }).limitsFor(run);
    await expect(limits()).rejects.toThrow('away');
    isAway = false;
    expect(await limits()).toMatchObject([{ scope: 'run' }]);
  });

  it('halts a sub-agent within one step, before its next call', async () => {
    const family = aFamilyWorker(open());
    const { run } = await family.begin();
    const spawned = await family.spawnOne(run);
    const child = await family.claimRun(spawned.laneKey);
    const again = costing(callsTools({ id: '1', name: 'act' }), dear);
    const { deps, model, ran } = depsFor([again, again, again], { tree: 20_000 }, { holder: 'boot-1' });
    await executeRun(deps, child, untilDone());
    expect([model.requests.length, ran.length]).toEqual([1, 1]);
    expect(await open().read(childEnd, spawned.id)).toEqual({ state: 'done', status: 'failed' });
    expect(await open().read(readPayer, { runId: child.runId })).toMatchObject({
      sessionId: run.sessionId,
      treeId: run.runId,
    });
  });
});

function raiseOrder(conversation: string, budget: BudgetLimit) {
  const decision = {
    kind: 'command',
    command: 'budget',
    input: { input: { kind: 'raise', budget } },
  } as const;
  return {
    ...aCommand(conversation, { kind: 'status' }),
    decision: { ...decision, lane: aLane(conversation), route: aRoute(conversation) },
  };
}

/** Reads how long the lane's run may wait, ms; undefined if it isn't parked. */
const waitIn: StoreQuery<string, number | undefined> = {
  query: 'waitIn',
  run: async (tx, laneKey) => {
    const row = await tx.db
      .selectFrom('lanes')
      .innerJoin('runs', 'runs.id', 'lanes.runId')
      .select(['leaseUntil', 'parkedAt'])
      .where('lanes.key', '=', laneKey)
      .executeTakeFirst();
    return row?.parkedAt ? row.leaseUntil - row.parkedAt : undefined;
  },
};

const childEnd: StoreQuery<string, unknown> = {
  query: 'childEnd',
  run: (tx, id) =>
    tx.db.selectFrom('children').select(['state', 'status']).where('id', '=', id).executeTakeFirst(),
};
