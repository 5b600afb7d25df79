import { expect, it } from 'vitest';
import type { AgentId } from '../../src/contracts/ids.ts';
import { createBudgetRules } from '../../src/models/budget-rules.ts';
import { parkForBudget } from '../../src/store/lanes/park-run.ts';
import { readSweep } from '../../src/store/lanes/sweep.ts';
import { callIdOf, reserveCall } from '../../src/store/money/model-call.ts';
import { counted, rate } from '../store/call-builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { anAccount, createIntakeFixture, refOf } from './support/intake-fixture.ts';

describeEachDatabase('/usage and /budget', (open) => {
  const budgets = { session: 2_000_000, person: 500_000, gateway: 10_000_000 };
  const settings = { agents: [], defaultAgent: 'main' as AgentId, timeZone: 'UTC' };
  const rules = createBudgetRules({ ...settings, budgets });
  const none = createBudgetRules({ ...settings, budgets: {} });

  /** Returns an owner and a guest in an intake fixture with budgets, or without. */
  const start = (limits = rules) => {
    const [ann, bob] = [anAccount('alpha'), anAccount('alpha')];
    const config = { owners: [refOf(ann)] };
    const town = createIntakeFixture(open(), { config, budgets: limits });
    const ask = async (who: typeof ann, text: string) => {
      const { kind } = await town.send(who, text);
      return { kind, text: (await town.said(who)).at(-1) };
    };
    return { ann, bob, town, ask };
  };

  it("shows a conversation's usage by model, with the share read from the cache", async () => {
    const { ann, town, ask } = start();
    expect((await ask(ann, '/usage')).text).toMatch(/^This conversation hasn’t used any model yet\./);
    const run = await town.worker.claimRun(town.laneOf(await town.send(ann, 'look')));
    const { laneKey, epoch, runId, sessionId } = run;
    const call = { id: callIdOf(epoch, 2), runId, sessionId, purpose: 'turn', rate, reserved: 9 } as const;
    await open().write(reserveCall, { ...{ laneKey, epoch, runId, limits: [], ends: [] }, call });
    const lost = { id: call.id, latencyMs: 1, end: { state: 'unknown' } } as const;
    await town.worker.answer(run, 'seen', { modelCalls: [counted(run, { cacheReadTokens: 360 }), lost] });
    const [first, ...lines] = (await ask(ann, '/usage')).text?.split('\n') ?? [];
    expect(first).toBe('This conversation: $0.0001, model calls: 2');
    expect(lines).toEqual([
      'test-model: $0.0001, calls: 2, tokens in: 480 (75 % from the cache), out: 30',
      'Calls of unknown cost, counted at an estimate or their maximum: 1',
      'You today: $0.0000',
      expect.stringMatching(/^Everyone today: \$/),
    ]);
  });

  it("shows what is spent and reserved in each budget, the gateway's only to an owner", async () => {
    const { ann, bob, town, ask } = start();
    const run = await town.worker.claimRun(town.laneOf(await town.send(bob, 'look')));
    const { laneKey, epoch, runId, sessionId } = run;
    const call = { id: callIdOf(epoch, 2), runId, sessionId, purpose: 'turn', rate } as const;
    const limits = [{ scope: 'session', key: `session:${sessionId}`, limit: budgets.session }] as const;
    const fence = { laneKey, epoch, runId };
    await open().write(reserveCall, { ...fence, call: { ...call, reserved: 30_000 }, limits, ends: [] });
    expect((await ask(bob, '/budget')).text?.split('\n')).toEqual([
      'Budget for this conversation: $0.0000 of $2.00 spent, $0.0300 reserved',
      'Budget per person and day: $0.0000 of $0.5000 spent, $0.0000 reserved',
    ]);
    const shown = (await ask(ann, '/budget')).text?.split('\n') ?? [];
    expect(shown.some((line) => line.startsWith('Budget for all conversations per day'))).toBe(true);
    expect(shown.at(-1)).toBe('Raise one with /budget, its name (person, gateway) and an amount in dollars.');
    expect((await start(none).ask(ann, '/budget')).text).toBe('No budget applies here.');
  });

  it('lets only the owner raise a budget, here or by its name', async () => {
    const { ann, bob, town, ask } = start();
    expect(await ask(bob, '/budget person 100')).toEqual({
      kind: 'refused',
      text: 'Only my owner may do that.',
    });
    expect((await ask(ann, '/budget person 3')).text).toBe(
      'The budget per person and day is now $3.00 for today.',
    );
    expect((await ask(ann, '/budget')).text).toContain('Budget per person and day: $0.0000 of $3.00 spent');
    expect((await ask(bob, '/budget')).text).toContain('Budget per person and day: $0.0000 of $0.5000 spent');

    const { sessionId } = await town.worker.claimRun(town.laneOf(await town.send(bob, 'look')));
    const key = `session:${sessionId}`;
    expect((await ask(ann, `/budget ${key} 7`)).text).toMatch(/^No budget “session:/);
    const asked = await town.send(ann, 'mine');
    const run = await town.worker.claimRun(town.laneOf(asked));
    const { laneKey, epoch, runId } = run;
    const call = { id: callIdOf(epoch, 2), runId, sessionId, purpose: 'turn', rate, reserved: 1 } as const;
    const limits = [{ scope: 'session', key, limit: 0 }] as const;
    await open().write(reserveCall, { ...{ laneKey, epoch, runId, limits, ends: [] }, call });
    expect((await ask(ann, `/budget ${key} 7`)).text).toMatch(
      /^The budget for this conversation is now \$7\.00/,
    );
    expect((await ask(bob, '/budget')).text).toContain('$0.0000 of $7.00 spent');
    expect((await ask(ann, '/budget moon 7')).text).toMatch(/^No budget “moon” applies here\. Use one of: /);
  });

  it('accepts an amount in either decimal notation, and none that may mean thousands', async () => {
    const { ann, ask } = start();
    const usage = 'Use /budget alone, or with a budget and an amount in dollars: /budget session 10';
    for (const unclear of ['1,000', '1.000', '1,2345', '1,000.50', '-1'])
      expect((await ask(ann, `/budget person ${unclear}`)).text, unclear).toBe(usage);
    const said = async (amount: string) => (await ask(ann, `/budget person ${amount}`)).text;
    for (const [amount, dollars] of [
      ['2,50', '$2.50'],
      ['$1000.5', '$1000.50'],
      ['0.005', '$0.0050'],
    ] as const)
      expect(await said(amount)).toContain(`is now ${dollars} for today.`);
  });

  it('raises the budget that the paused run waits for, even from another day or before a link', async () => {
    const { ann, town, ask } = start();
    const { laneKey, epoch, runId } = await town.worker.claimRun(town.laneOf(await town.send(ann, 'look')));
    const key = `person:${refOf(ann)}:2001-05-07`;
    const refusal = { scope: 'person', key, limit: 1, needs: 5, isHeld: false } as const;
    const pause = { reason: 'room', workedMs: 0, waitMs: 600_000, modelCalls: [], notice: undefined };
    await open().write(parkForBudget, { laneKey, epoch, runId, refusal, ...pause });
    const withRoom = async () => (await open().read(readSweep, {})).withRoom.map((run) => run.runId);
    await ask(ann, '/budget session 3');
    expect(await withRoom()).not.toContain(runId);
    await ask(ann, '/budget person 3');
    expect(await withRoom()).toContain(runId);
    expect((await ask(ann, '/budget')).text).toContain('Budget per person and day: $0.0000 of $3.00 spent');
  });

  it('promises nothing to a paused run when the owner lowers its budget to 0', async () => {
    const { ann, town, ask } = start();
    const { laneKey, epoch, runId } = await town.worker.claimRun(town.laneOf(await town.send(ann, 'look')));
    const key = `person:${refOf(ann)}:2001-05-07`;
    const refusal = { scope: 'person', key, limit: 9, needs: 5, isHeld: true } as const;
    const pause = { reason: 'room', workedMs: 0, waitMs: 600_000, modelCalls: [], notice: undefined };
    await open().write(parkForBudget, { laneKey, epoch, runId, refusal, ...pause });
    expect((await ask(ann, '/budget person 0')).text).toBe(
      'The budget per person and day is now $0.0000 for today. Paused requests need more than that.',
    );
  });
});
