import { rememberSuccess } from '#channel-kit/keep-recent.ts';
import { isUncounted, type UncountedAgents } from '#contracts/call-ledger.ts';
import type { Clock } from '#contracts/clock.ts';
import type { BudgetRules } from '../models/budget-rules.ts';
import type { IdentityLinks } from '../sessions/identities.ts';
import { readOwnerRoute } from '../store/alerts/owner-route.ts';
import type { Store } from '../store/base/command.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { BudgetLimit } from '../store/money/budget.ts';
import { readPayer } from '../store/reads/read-usage.ts';

/** The budgets that runs count against. */
export interface RunBudgets {
  readonly uncounted: UncountedAgents;
  /** Returns a function that yields one run's budgets at the time of each call, since each day has its own. */
  limitsFor(run: Pick<ClaimedRun, 'runId' | 'agentId' | 'class'>): () => Promise<readonly BudgetLimit[]>;
  /** Says whether an owner has written, who could raise a budget in chat. */
  hasOwner(): Promise<boolean>;
}

export type RunBudgetsDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly clock: Clock;
  readonly rules: BudgetRules;
  /** Rules of the configuration, which a reload changes in place. */
  readonly policy: {
    readonly access: { readonly owners: ReadonlySet<string> };
    /** Accounts of one person. */
    readonly identityLinks: IdentityLinks;
  };
};

/** Creates the budgets of this process's runs. */
export function createRunBudgets({ store, clock, rules, policy }: RunBudgetsDeps): RunBudgets {
  return {
    uncounted: rules.uncounted,
    limitsFor: (run) => {
      if (isUncounted(rules.uncounted, run)) return async () => [];
      const { runId, agentId } = run;
      const payer = rememberSuccess(() => store.read(readPayer, { runId }));
      return async () => {
        const { person, identity, ...rest } = await payer();
        // A run without a sender counts against no person's budget.
        const name = person && (policy.identityLinks.get(person) ?? identity ?? person);
        return rules.limitsOf({ ...rest, runId, agentId, person: name, at: clock.now() });
      };
    },
    hasOwner: async () => {
      const owners = [...policy.access.owners];
      return (await store.read(readOwnerRoute, { owners })) !== undefined;
    },
  };
}
