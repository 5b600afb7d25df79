import type { Clock } from '#contracts/clock.ts';
import type { BudgetScope } from '#contracts/model.ts';
import { identityLinksFrom } from '../sessions/identity-links.ts';
import type { Store } from '../store/base/command.ts';
import type { BudgetLimit } from '../store/money/budgets.ts';
import { type Payer, readPayer } from '../store/reads/read-payer.ts';

/** Configured budgets, micro-dollars. */
export type BudgetLimits = Readonly<Partial<Record<BudgetScope, number>>>;

/** The budgets that runs count against. */
export interface RunBudgets {
  /** Whether any is configured. */
  readonly apply: boolean;
  /** Gives those of one run, as of the moment when it is called: a new day has budgets of its own. */
  limitsFor(runId: string): () => Promise<readonly BudgetLimit[]>;
}

export type RunBudgetsDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly clock: Clock;
  readonly limits: BudgetLimits;
  /** Days begin and end here. */
  readonly timeZone: string;
  /** Accounts of one person, as configured. */
  readonly config: { readonly identityLinks: Readonly<Record<string, readonly string[]>> };
};

/** Creates the budgets of the configuration. Throws for a time zone that doesn't exist. */
export function createRunBudgets(deps: RunBudgetsDeps): RunBudgets {
  const { store, clock, limits, timeZone } = deps;
  const identityLinks = identityLinksFrom(deps.config.identityLinks);
  const apply = Object.values(limits).some((limit) => limit !== undefined);
  const dayOf = dayIn(timeZone);
  return {
    apply,
    limitsFor: (runId) => {
      let payer: Promise<Payer> | undefined;
      return async () => {
        if (!apply) return [];
        payer ??= store.read(readPayer, { runId });
        const { person, identity, ...rest } = await payer;
        const name = person === undefined ? undefined : (identityLinks.get(person) ?? identity ?? person);
        return limitsOf(limits, { ...rest, runId, person: name, day: dayOf(clock.now()) });
      };
    },
  };
}

type BudgetSubject = Omit<Payer, 'identity'> & { readonly runId: string; readonly day: string };

/** A run that nobody sent a message for has no person's budget. */
function limitsOf(limits: BudgetLimits, subject: BudgetSubject): readonly BudgetLimit[] {
  const { runId, sessionId, treeId, person, day } = subject;
  const all = [
    { scope: 'run', limit: limits.run, key: `run:${runId}` },
    { scope: 'session', limit: limits.session, key: `session:${sessionId}` },
    { scope: 'tree', limit: limits.tree, key: `tree:${treeId}` },
    {
      scope: 'person',
      limit: person === undefined ? undefined : limits.person,
      key: `person:${person}:${day}`,
    },
    { scope: 'gateway', limit: limits.gateway, key: `gateway:${day}` },
  ] as const;
  return all.flatMap(({ limit, ...budget }) => (limit === undefined ? [] : [{ ...budget, limit }]));
}

/** Gives the date of a time, ms since the epoch, as `2026-11-22`. */
function dayIn(timeZone: string): (at: number) => string {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  return (at) => format.format(at);
}
