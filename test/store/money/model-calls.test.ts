import { expect, it } from 'vitest';
import { systemClock } from '../../../src/channel-kit/system-clock.ts';
import type { CallEnd } from '../../../src/contracts/call-ledger.ts';
import { noProbe } from '../../../src/contracts/probe.ts';
import { createDemoProvider } from '../../../src/models/demo.ts';
import { createRunCalls } from '../../../src/runs/call-ledger.ts';
import { isAlertOpen } from '../../../src/store/alerts/alert.ts';
import type { StoreQuery } from '../../../src/store/base/command.ts';
import type { ClaimedRun } from '../../../src/store/lanes/claim-lane.ts';
import { handOver } from '../../../src/store/lanes/leases.ts';
import {
  type BudgetLimit,
  deleteOldBudgets,
  endBudgetAlerts,
  hasBudget,
} from '../../../src/store/money/budget.ts';
import { callIdOf, type ModelCallEnd, reserveCall } from '../../../src/store/money/model-call.ts';
import { readSessions } from '../../../src/store/reads/read-sessions.ts';
import { readUsage } from '../../../src/store/reads/read-usage.ts';
import { readRuns } from '../../../src/store/reads/why/read-runs.ts';
import { aRequest } from '../../models/builders.ts';
import { aConversation } from '../a-conversation.ts';
import { aLane, aWorker, endWithout, unique } from '../builders.ts';
import { counted, rate } from '../call-builders.ts';
import { describeEachDatabase } from '../each-database.ts';
import { readSums, sumUp } from '../usage-sums.ts';

type Money = {
  readonly calls: readonly { readonly id: string; readonly state: string; readonly cost: number }[];
  readonly cost: number;
};

const readMoney: StoreQuery<{ readonly runId: string }, Money> = {
  query: 'readMoney',
  run: async (tx, { runId }) => {
    const calls = await tx.db
      .selectFrom('modelCalls')
      .select(['id', 'state', 'cost'])
      .where('runId', '=', runId)
      .orderBy('id')
      .execute();
    const session = await tx.db
      .selectFrom('sessions')
      .innerJoin('runs', 'runs.sessionId', 'sessions.id')
      .select('cost')
      .where('runs.id', '=', runId)
      .executeTakeFirstOrThrow();
    return { calls, cost: session.cost };
  },
};

const readBudget: StoreQuery<
  { readonly key: string },
  { readonly spent: number; readonly reserved: number } | undefined
> = {
  query: 'readBudget',
  run: (tx, { key }) =>
    tx.db.selectFrom('budgets').select(['spent', 'reserved']).where('key', '=', key).executeTakeFirst(),
};

const readRunsOf: StoreQuery<{ readonly runId: string }, Awaited<ReturnType<typeof readRuns>>> = {
  query: 'readRunsOf',
  run: (tx, { runId }) => readRuns(tx, [runId]),
};

describeEachDatabase('the ledger of model calls', (open, { sql }) => {
  const asked = async () => {
    const { conversation, worker, begin } = aConversation(open());
    const run = await begin('hello');
    return { worker, conversation, run };
  };
  const moneyOf = ({ runId }: ClaimedRun) => open().read(readMoney, { runId });
  const fenceOf = ({ laneKey, epoch, runId }: ClaimedRun) => ({ laneKey, epoch, runId });
  const ended = (run: ClaimedRun, n: number, end: ModelCallEnd['end']): ModelCallEnd => ({
    id: callIdOf(run.epoch, n),
    latencyMs: 1,
    end,
  });
  const reserve = (run: ClaimedRun, n: number, reserved: number, limits: readonly BudgetLimit[] = []) =>
    open().write(reserveCall, {
      ...fenceOf(run),
      call: {
        id: callIdOf(run.epoch, n),
        runId: run.runId,
        sessionId: run.sessionId,
        purpose: 'turn',
        rate,
        reserved,
      },
      limits,
      ends: [],
    });
  const end = (run: ClaimedRun, modelCalls: readonly ModelCallEnd[]) =>
    endWithout(open(), run, 'aborted', { modelCalls });

  const handOverWith = (run: ClaimedRun, modelCalls: readonly ModelCallEnd[]) =>
    open().write(handOver, { ...fenceOf(run), modelCalls });
  const claimAgain = ({ laneKey }: ClaimedRun) => aWorker(open()).claimRun(laneKey);

  it("opens the first call's row with the claim and settles it once with the answer", async () => {
    const { worker, run } = await asked();
    const id = callIdOf(run.epoch, 1);
    expect(run.openCall).toBe(id);
    expect(await moneyOf(run)).toEqual({ calls: [{ id, state: 'open', cost: 0 }], cost: 0 });
    const modelCalls = [counted(run, { cost: 700 }), counted(run, { cost: 900 })];
    await worker.answer(run, 'hi', { modelCalls });
    expect(await moneyOf(run)).toEqual({ calls: [{ id, state: 'settled', cost: 700 }], cost: 700 });
  });

  it('opens no row with the claim if a budget of the agent counts the call', async () => {
    const { laneKey, worker, say } = aConversation(open());
    await say('hello');
    const claimed = await worker.claim(laneKey, 10_000, { uncounted: ['other'] });
    const run = claimed.kind === 'run' ? claimed.run : expect.fail(claimed.kind);
    expect([run.openCall, (await moneyOf(run)).calls]).toEqual([undefined, []]);
    expect(await reserve(run, 1, 5, [{ scope: 'run', key: unique('run'), limit: 9 }])).toEqual({
      kind: 'open',
    });
  });

  it('closes a call that a dead process left open as unknown, at its bound', async () => {
    const { worker, conversation, run } = await asked();
    await open().write(handOver, fenceOf(run));
    const resumed = await worker.claimRun(aLane(conversation).key);
    expect(resumed).toMatchObject({ runId: run.runId, isResumed: true });
    expect(resumed.openCall).toBeUndefined();
    const { calls, cost } = await moneyOf(run);
    expect(calls).toEqual([{ id: callIdOf(run.epoch, 1), state: 'unknown', cost }]);
    // The full history, system prompt, tools and the longest answer; less than the model's window.
    const longestAnswer = (rate.answerTokens * rate.output) / 1e6;
    expect(cost).toBeGreaterThan(longestAnswer + 30_000 * 2);
    expect(cost).toBeLessThan(longestAnswer + 31_000 * 2);
  });

  it('closes a call left open by a machine that was off for a long time', async () => {
    const { run } = await asked();
    await sql(`update "modelCalls" set "openedAt" = 1 where "runId" = '${run.runId}'`);
    await open().write(handOver, fenceOf(run));
    expect(await claimAgain(run)).toMatchObject({ runId: run.runId, isResumed: true });
    expect((await moneyOf(run)).calls).toMatchObject([{ state: 'unknown' }]);
  });

  it('charges a call that broke off for the most that its request can have cost', async () => {
    const { run } = await asked();
    const prices = { input: rate.input, output: rate.output, cacheRead: rate.input, cacheWrite: rate.input };
    const info = createDemoProvider({ clock: systemClock }).model();
    const model = { ...info, id: rate.model, prices };
    const deps = { store: open(), clock: systemClock, probe: noProbe, purpose: 'turn', rate } as const;
    const calls = createRunCalls({ ...deps, limits: async () => [], freedRoom: () => undefined }, run);
    const system = [{ text: 'x'.repeat(120_000), isStable: true }];
    await calls.open({ provider: rate.provider, model, request: aRequest({ system, maxTokens: 1_000 }) });
    await end(run, calls.endAll());
    const { calls: rows, cost } = await moneyOf(run);
    expect(rows.map(({ state }) => state)).toEqual(['unknown']);
    const [input, output] = [rate.input / 1e6, rate.output / 1e6];
    expect(cost).toBeGreaterThan(120_000 * input + 1_000 * output);
    expect(cost).toBeLessThan(123_000 * input + 1_000 * output);
  });

  /** Opens a call of 9,000 bytes with an answer of at most 1,000 tokens, ends it, and reads what it was charged. */
  const chargeFor = async (end: CallEnd, limits: readonly BudgetLimit[] = []) => {
    const { worker, run } = await asked();
    const prices = { input: rate.input, output: rate.output, cacheRead: rate.input, cacheWrite: rate.input };
    const model = { ...createDemoProvider({ clock: systemClock }).model(), id: rate.model, prices };
    const deps = { store: open(), clock: systemClock, probe: noProbe, purpose: 'turn', rate } as const;
    const calls = createRunCalls({ ...deps, limits: async () => limits, freedRoom: () => undefined }, run);
    const request = aRequest({ system: [{ text: 'x'.repeat(9_000), isStable: true }], maxTokens: 1_000 });
    await calls.close(await calls.open({ provider: rate.provider, model, request }), end);
    await worker.answer(run, 'hi', { modelCalls: calls.endAll() });
    const { sessionId } = run;
    expect(await open().read(readSums, { sessionId })).toEqual(await open().read(sumUp, { sessionId }));
    const [facts] = await open().read(readRunsOf, { runId: run.runId });
    const { cost } = await moneyOf(run);
    const called = facts?.modelCalls.filter(({ state }) => state !== 'void').at(-1);
    expect(called?.cost).toBe(cost);
    return called;
  };
  const budget = (): readonly BudgetLimit[] => [{ scope: 'session', key: unique('session:'), limit: 1e9 }];

  it('charges a stopped call for its prompt and the text that arrived, with or without a budget', async () => {
    const prompt = { inputTokens: 400, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };
    for (const limits of [[], budget()]) {
      expect(await chargeFor({ state: 'stopped', prompt, writtenBytes: 300 }, limits)).toMatchObject({
        ...{ state: 'unknown', doubt: 'stopped', inputTokens: 400, outputTokens: 100 },
        cost: 400 * 2 + 100 * 10,
      });
      const guessed = await chargeFor({ state: 'stopped', writtenBytes: 0 }, limits);
      expect(guessed).toMatchObject({ doubt: 'stopped', outputTokens: 0 });
      expect(guessed?.cost).toBeGreaterThan(3_000 * 2);
      expect(guessed?.cost).toBeLessThan(3_500 * 2);
      const endless = await chargeFor({ state: 'stopped', writtenBytes: 1e9 }, limits);
      expect(endless?.cost).toBeLessThan(13_000 * 2 + 1_000 * 10);
    }
  });

  it("charges an impossible token count at the call's bound and marks it as miscounted", async () => {
    const usage = { inputTokens: 400, outputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const counted = { state: 'settled', cost: 1_800, model: rate.model } as const;
    for (const limits of [[], budget()]) {
      expect(await chargeFor({ ...counted, usage }, limits)).toMatchObject({ state: 'settled', cost: 1_800 });
      for (const over of [{ inputTokens: 90_000 }, { cacheReadTokens: 90_000 }, { outputTokens: 1_001 }]) {
        const told = await chargeFor({ ...counted, usage: { ...usage, ...over }, cost: 9e6 }, limits);
        expect(told).toMatchObject({ state: 'unknown', doubt: 'miscounted' });
        expect(told?.outputTokens).toBeLessThanOrEqual(100);
        expect(told?.cost).toBeGreaterThan(9_000 * 2 + 1_000 * 10);
        expect(told?.cost).toBeLessThan(13_000 * 2 + 1_000 * 10);
      }
    }
  });

  it('keeps the reason for a cache miss, however the call is charged', async () => {
    const usage = { inputTokens: 400, outputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const cacheMiss = { reason: 'tools_changed', changed: ['tools'], prefix: 'abc' } as const;
    const counted = { state: 'settled', cost: 1_800, model: rate.model, cacheMiss } as const;
    expect(await chargeFor({ ...counted, usage })).toMatchObject({ state: 'settled', cacheMiss });
    const absurd = { ...usage, inputTokens: 90_000 };
    const told = await chargeFor({ ...counted, usage: absurd });
    expect(told).toMatchObject({ state: 'unknown', doubt: 'miscounted', cacheMiss });
  });

  it('charges every kind of end: unknown calls at their reservation, void calls nothing', async () => {
    const { run } = await asked();
    await reserve(run, 2, 5_000);
    await reserve(run, 3, 6_000);
    await end(run, [
      counted(run, { cost: 10 }),
      ended(run, 2, { state: 'void' }),
      ended(run, 3, { state: 'unknown' }),
    ]);
    const { calls, cost } = await moneyOf(run);
    expect(calls.map(({ state, cost }) => [state, cost])).toEqual([
      ['settled', 10],
      ['void', 0],
      ['unknown', 6_000],
    ]);
    expect(cost).toBe(6_010);
  });

  it("sums up a session's calls by model, each once, however they end", async () => {
    const { laneKey, worker, begin, say } = aConversation(open());
    const run = await begin('hello');
    await reserve(run, 2, 5_000);
    await reserve(run, 3, 6_000);
    const other = counted(run, { cost: 10, model: 'other', cacheReadTokens: 4 });
    const answered = { ...other, id: callIdOf(run.epoch, 2) };
    const unknown = ended(run, 3, { state: 'unknown' });
    const modelCalls = [ended(run, 1, { state: 'void' }), answered, answered, unknown];
    await worker.answer(run, 'hi', { modelCalls });
    await say('and now?');
    const lost = await worker.claimRun(laneKey);
    await handOverWith(lost, [counted(lost, { cost: 3 })]);
    await end(await claimAgain(lost), [counted(lost, { cost: 99 })]);
    const { sessionId } = run;
    expect(await open().read(readSums, { sessionId })).toEqual(await open().read(sumUp, { sessionId }));
    const usage = await open().read(readUsage, { sessionId });
    expect(usage?.models).toMatchObject([
      { model: 'test-model', calls: 2, cost: 6_003, inputTokens: 120 },
      { model: 'other', calls: 1, cost: 10, cacheReadTokens: 4 },
    ]);
    expect(usage).toMatchObject({ cost: 6_013, unsure: 1 });
  });

  it('charges an uncounted answer at its bound and keeps its estimated tokens', async () => {
    const { worker, run } = await asked();
    await reserve(run, 2, 5_000);
    const usage = { inputTokens: 90, outputTokens: 9, cacheReadTokens: 0, cacheWriteTokens: 0 };
    const uncounted = { state: 'unknown', usage, model: 'other' } as const;
    await worker.answer(run, 'hi', {
      modelCalls: [ended(run, 1, { state: 'void' }), ended(run, 2, uncounted)],
    });
    expect((await moneyOf(run)).cost).toBe(5_000);
    const [session] = await open().read(readSessions, { keys: [run.laneKey], limit: 1 });
    expect(session).toMatchObject({ promptTokens: 90, completionTokens: 9 });
  });

  it('charges each of several lost calls at its own bound', async () => {
    const { run } = await asked();
    await reserve(run, 2, 5_000);
    await reserve(run, 3, 6_000);
    await end(
      run,
      [1, 2, 3].map((n) => ended(run, n, { state: 'unknown' })),
    );
    const { calls, cost } = await moneyOf(run);
    const [first = 0, ...rest] = calls.map((call) => call.cost);
    expect(first).toBeGreaterThan((rate.answerTokens * rate.output) / 1e6);
    expect([rest, cost]).toEqual([[5_000, 6_000], first + 11_000]);
  });

  it('deletes past budgets once nothing counts against them', async () => {
    const { run } = await asked();
    const [day, over, held] = [unique('gateway:2026'), unique('run:'), unique('gateway:2027')];
    const inUse = [`run:${run.runId}`, `tree:${run.runId}`, `session:${run.sessionId}`];
    const limits = (keys: readonly string[]) =>
      keys.map((key): BudgetLimit => ({ scope: 'gateway', key, limit: 1e9 }));
    await reserve(run, 2, 5, limits([day, over, ...inUse]));
    await reserve(run, 3, 5, limits([held]));
    await handOverWith(run, [ended(run, 2, { state: 'void' })]);
    const left = async () => {
      await open().write(deleteOldBudgets, { limit: 500 });
      const keys = [day, over, held, ...inUse];
      const found = await Promise.all(keys.map((key) => open().read(hasBudget, { key })));
      return keys.filter((_, index) => found[index]);
    };
    expect(await left(), 'at once').toEqual([day, over, held, ...inUse]);
    await sql(`update budgets set "touchedAt" = "touchedAt" - ${3 * 86_400_000}`);
    expect(await left(), 'three days later').toEqual([held, ...inUse]);
    const again = await claimAgain(run);
    await end(again, []);
    await sql(`update budgets set "touchedAt" = "touchedAt" - ${3 * 86_400_000}`);
    expect(await left(), 'after the run').toEqual([inUse[2]]);
  });

  it("ends the alert of a spent budget with its day, and of a run's budget a day after the run", async () => {
    const { run } = await asked();
    const [yesterday, today] = [unique('gateway:2026'), unique('gateway:2027')];
    const [own, session] = [`run:${run.runId}`, `session:${run.sessionId}`];
    const spent = (key: string, over: Partial<BudgetLimit> = {}) =>
      reserve(run, 2, 5, [{ scope: 'gateway', key, limit: 0, ...over }]);
    await spent(yesterday, { endsAt: Date.now() - 1_000 });
    await spent(today, { endsAt: Date.now() + 600_000 });
    await spent(own);
    await spent(session);
    const left = async () => {
      await open().write(endBudgetAlerts, {});
      const all = [yesterday, today, own, session];
      const kind = 'budget-spent';
      const found = await Promise.all(all.map((subject) => open().read(isAlertOpen, { kind, subject })));
      return all.filter((_, index) => found[index]);
    };
    expect(await left(), 'before the owner was told').toEqual([yesterday, today, own, session]);
    await sql(`update "ownerNotices" set "isPending" = 0`);
    expect(await left(), 'once told').toEqual([today, own, session]);
    await end(run, []);
    expect(await left(), 'with the run').toEqual([today, own, session]);
    await sql(`update "ownerNotices" set "lastAt" = "lastAt" - 86400000`);
    expect(await left(), 'a day later').toEqual([today, session]);
  });

  it('leaves no call of an ended run open, whatever its holder reported', async () => {
    const { run } = await asked();
    await reserve(run, 2, 5_000);
    await end(run, []);
    expect((await moneyOf(run)).calls.map(({ state }) => state)).toEqual(['unknown', 'unknown']);
    // A reservation sent before the run was stopped, and overtaken by its end.
    const limits = [{ scope: 'session', key: unique('late'), limit: 9_000 }] as const;
    await expect(reserve(run, 3, 5_000, limits)).rejects.toMatchObject({ code: 'stale_epoch' });
    expect((await moneyOf(run)).calls.map(({ state }) => state)).toEqual(['unknown', 'unknown']);
    expect(await open().read(readBudget, { key: limits[0].key })).toBeUndefined();
  });

  it("reserves a call in all of its budgets or in none, and returns what it didn't cost", async () => {
    const { run } = await asked();
    const [wide, tight] = [unique('a'), unique('b')];
    const limits: BudgetLimit[] = [
      { scope: 'gateway', key: tight, limit: 1_000 },
      { scope: 'session', key: wide, limit: 5_000 },
    ];
    expect(await reserve(run, 2, 900, limits)).toEqual({ kind: 'open' });
    expect(await reserve(run, 2, 900, limits), 'a repeat').toEqual({ kind: 'open' });
    const refusal = { scope: 'gateway', key: tight, limit: 1_000, needs: 200 } as const;
    const held = await reserve(run, 3, 200, limits);
    expect(held, 'others hold it').toEqual({ kind: 'spent', refusal: { ...refusal, isHeld: true } });
    const spent = await reserve(run, 4, 1_001, limits);
    expect(spent).toEqual({ kind: 'spent', refusal: { ...refusal, needs: 1_001, isHeld: false } });
    for (const key of [wide, tight])
      expect(await open().read(readBudget, { key })).toEqual({ spent: 0, reserved: 900 });
    const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 };
    await end(run, [ended(run, 2, { state: 'settled', usage, cost: 250, model: 'test-model' })]);
    for (const key of [wide, tight])
      expect(await open().read(readBudget, { key })).toEqual({ spent: 250, reserved: 0 });
  });
});
