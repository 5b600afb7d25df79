/**
 * Which budgets a call counts against, and their configured limits. An agent's own limits replace the top-level ones:
 * for a run, those of its own agent; for a conversation, a tree and a person, those of the agent that the person talks
 * to, since sub-agents spend that budget.
 */
import type { UncountedAgents } from '#contracts/call-ledger.ts';
import type { BudgetScope } from '#contracts/model.ts';
import type { Config } from '../config/config.ts';
import type { BudgetLimit } from '../store/money/budget.ts';
import type { TextKey } from '../texts/chat-texts.ts';

/** Text that names a budget, as in “The budget for this conversation is used up”. */
export const budgetNames: Readonly<Record<BudgetScope, TextKey>> = {
  run: 'budgetRun',
  session: 'budgetSession',
  tree: 'budgetTree',
  person: 'budgetPerson',
  gateway: 'budgetGateway',
};

/** Limits in micro-dollars. */
export type ScopeLimits = Readonly<Partial<Record<BudgetScope, number>>>;

/** The run, session, tree and person that a call is charged to; absent ids have no budget. */
export type BudgetSubject = {
  readonly runId?: string | undefined;
  /** The agent that makes the call. */
  readonly agentId: string;
  /** The agent of the top session. */
  readonly topAgentId: string;
  /** The top session. */
  readonly sessionId?: string | undefined;
  readonly treeId?: string | undefined;
  /** The identity, or the account if it has none, `<channel>:<peer>`. */
  readonly person?: string | undefined;
  /** When the call is made, ms since the epoch. */
  readonly at: number;
};

/** The configured budgets. */
export interface BudgetRules {
  readonly uncounted: UncountedAgents;
  /** Returns the budgets of a subject on the day of its call. */
  limitsOf(subject: BudgetSubject): readonly BudgetLimit[];
}

export type BudgetSettings = Pick<Config, 'defaultAgent'> & {
  readonly budgets: ScopeLimits;
  readonly agents: readonly { readonly id: string; readonly budgets?: ScopeLimits | undefined }[];
  /** The time zone of days; default: this machine's. */
  readonly timeZone?: string | undefined;
};

/** Creates the configured budgets. Throws if the time zone doesn't exist. */
export function createBudgetRules({ budgets, agents, defaultAgent, timeZone }: BudgetSettings): BudgetRules {
  const dayOf = dayIn(timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone);
  // An agent removed from the configuration is replaced by the default one.
  const ofAgent = (id: string) =>
    (agents.find((agent) => agent.id === id) ?? agents.find((agent) => agent.id === defaultAgent))?.budgets;
  return {
    uncounted: uncountedOf({ budgets, agents }),
    limitsOf: ({ runId, agentId, topAgentId, sessionId, treeId, person, at }) => {
      const [own, top] = [ofAgent(agentId), ofAgent(topAgentId)];
      const { day, endsAt } = dayOf(at);
      const all = [
        { scope: 'run', limit: own?.run ?? budgets.run, id: runId },
        { scope: 'session', limit: top?.session ?? budgets.session, id: sessionId },
        { scope: 'tree', limit: top?.tree ?? budgets.tree, id: treeId },
        {
          scope: 'person',
          limit: top?.person ?? budgets.person,
          id: person === undefined ? undefined : `${person}:${day}`,
          endsAt,
        },
        { scope: 'gateway', limit: budgets.gateway, id: day, endsAt },
      ] as const;
      return all.flatMap(({ id, limit, ...rest }) =>
        limit === undefined || id === undefined ? [] : [{ ...rest, limit, key: `${rest.scope}:${id}` }],
      );
    },
  };
}

function uncountedOf({ budgets, agents }: Pick<BudgetSettings, 'budgets' | 'agents'>): UncountedAgents {
  const isEmpty = (limits: ScopeLimits = {}) => Object.values(limits).every((limit) => limit === undefined);
  if (!isEmpty(budgets)) return [];
  const free = agents.filter((agent) => isEmpty(agent.budgets));
  return free.length === agents.length ? 'all' : free.map(({ id }) => id);
}

/** A date as `2026-11-22`, and its end, ms since the epoch. */
type Day = { readonly day: string; readonly endsAt: number };

/** Returns a function from a time, ms since the epoch, to its day. */
function dayIn(timeZone: string): (at: number) => Day {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  let known: (Day & { readonly from: number }) | undefined;
  return (at) => {
    if (known === undefined || at < known.from || at >= known.endsAt) {
      const day = format.format(at);
      known = { from: at, day, endsAt: endOf((time) => format.format(time) === day, at) };
    }
    return known;
  };
}

/** No day is longer, ms. */
const longestDayMs = 30 * 3_600_000;

/** Returns when the day of a time ends; days differ in length where clocks change. */
function endOf(isSameDay: (at: number) => boolean, at: number): number {
  let [last, end] = [at, at + longestDayMs];
  while (end - last > 1) {
    const middle = Math.floor((last + end) / 2);
    if (isSameDay(middle)) last = middle;
    else end = middle;
  }
  return end;
}
