import { describe, expect, it } from 'vitest';
import { isUncounted } from '../../src/contracts/call-ledger.ts';
import type { AgentId } from '../../src/contracts/ids.ts';
import { type BudgetSettings, createBudgetRules } from '../../src/models/budget-rules.ts';

describe('budget rules', () => {
  const defaultAgent = 'main' as AgentId;
  const limitsIn = (settings: Partial<BudgetSettings>, subject: object = {}) => {
    const rules = createBudgetRules({ budgets: {}, agents: [], defaultAgent, timeZone: 'UTC', ...settings });
    const call = {
      agentId: 'main',
      topAgentId: 'main',
      runId: 'r',
      sessionId: 's',
      treeId: 't',
      person: 'p',
    };
    const at = Date.UTC(2026, 10, 22, 23, 30);
    const found = rules.limitsOf({ ...call, at, ...subject });
    return {
      uncounted: rules.uncounted,
      limits: Object.fromEntries(found.map(({ key, limit }) => [key, limit])),
    };
  };

  it('applies exactly the budgets that have limits', () => {
    expect(limitsIn({})).toEqual({ uncounted: 'all', limits: {} });
    const budgets = { run: 1, session: 2, tree: 3, person: 4, gateway: 5 };
    expect(limitsIn({ budgets })).toEqual({
      uncounted: [],
      limits: { 'run:r': 1, 'session:s': 2, 'tree:t': 3, 'person:p:2026-11-22': 4, 'gateway:2026-11-22': 5 },
    });
  });

  it('leaves out budgets for a person or run that a call does not have', () => {
    const budgets = { run: 1, person: 4 };
    expect(limitsIn({ budgets }, { person: undefined, runId: undefined }).limits).toEqual({});
  });

  it("starts a budget's day by the configured time zone", () => {
    const budgets = { gateway: 5 };
    expect(limitsIn({ budgets, timeZone: 'Europe/Berlin' }).limits).toEqual({ 'gateway:2026-11-23': 5 });
  });

  it("ends a budget's day by the time zone, even when clocks change", () => {
    const { limitsOf } = createBudgetRules({
      ...{ budgets: { gateway: 5 }, agents: [], defaultAgent, timeZone: 'Europe/Berlin' },
    });
    const endOf = (at: number) => limitsOf({ agentId: 'main', topAgentId: 'main', at })[0]?.endsAt;
    // Clocks go back on 25 October and forward on 29 March.
    const ends = [Date.UTC(2026, 9, 25, 23), Date.UTC(2026, 2, 29, 22), Date.UTC(2026, 10, 22, 23)];
    expect([endOf(Date.UTC(2026, 9, 24, 22)), endOf(Date.UTC(2026, 2, 28, 23))]).toEqual(ends.slice(0, 2));
    const last = Date.UTC(2026, 10, 22, 22, 59, 59, 999);
    expect([endOf(last), endOf(last + 1)]).toEqual([ends[2], Date.UTC(2026, 10, 23, 23)]);
  });

  it("prefers an agent's own budgets; a sub-agent spends those of the agent above it", () => {
    const agents = [
      { id: 'main', budgets: { run: 10, tree: 30 } },
      { id: 'scout', budgets: { run: 1, tree: 3, person: 4 } },
    ];
    const budgets = { run: 5, session: 6, person: 7, gateway: 8 };
    expect(limitsIn({ budgets, agents }, { agentId: 'scout' }).limits).toEqual({
      ...{ 'run:r': 1, 'session:s': 6, 'tree:t': 30 },
      ...{ 'person:p:2026-11-22': 7, 'gateway:2026-11-22': 8 },
    });
  });

  it('counts no call of an agent without limits, unless it is a sub-agent', () => {
    const agents = [{ id: 'main' }, { id: 'scout', budgets: { run: 1 } }];
    const { uncounted } = limitsIn({ agents });
    const isFree = (agentId: string, name: string) => isUncounted(uncounted, { agentId, class: name });
    expect([isFree('main', 'main'), isFree('scout', 'main'), isFree('main', 'sub-1')]).toEqual([
      ...[true, false, false],
    ]);
    // The work of an agent that left the configuration may pass to an agent with a limit.
    expect(isFree('gone', 'main')).toBe(false);
  });

  it("applies the default agent's budgets to an agent that left the configuration", () => {
    const agents = [{ id: 'main', budgets: { run: 10 } }];
    expect(limitsIn({ agents }, { agentId: 'gone', topAgentId: 'gone' }).limits).toEqual({ 'run:r': 10 });
  });
});
