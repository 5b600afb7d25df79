import { ParleyError } from './errors.ts';
import type { BudgetScope, ModelInfo, ModelPurpose, ModelRequest, Usage } from './model.ts';

/** Where every try of a model call has its own row, opened before it leaves and closed once. */
export interface CallLedger {
  /** Whose calls they are, for those who watch them. */
  readonly subject?: CallSubject;
  /** Opens the row before a try leaves. Rejects with `BudgetSpentError`, or with what the store throws. */
  open(call: CallOpening): Promise<CallTicket>;
  /** Closes the row; a second end of the same ticket changes nothing. */
  close(ticket: CallTicket, end: CallEnd): Promise<void>;
}

/** The run that calls are made for, and what for. */
export type CallSubject = {
  readonly runId: string;
  /** The attempt at the run. */
  readonly epoch: number;
  readonly sessionId: string;
  readonly agentId: string;
  readonly purpose: ModelPurpose;
};

/** A try that is about to leave. */
export type CallOpening = {
  /** Name of the provider. */
  readonly provider: string;
  readonly model: ModelInfo;
  readonly request: ModelRequest;
};

/** An open row of the ledger. */
export type CallTicket = { readonly id: string };

/** How a try ended, as far as money goes. */
export type CallEnd =
  /** The provider counted it; `cost` in micro-dollars, by the prices of `model`, which answered. */
  | ({
      readonly state: 'settled';
      readonly usage: Usage;
      readonly cost: number;
      readonly model: string;
    } & RequestFacts)
  /** Nobody knows what was counted: it costs its bound. `usage`: an estimate of a whole answer's, by `model`. */
  | ({ readonly state: 'unknown'; readonly usage?: Usage; readonly model?: string } & RequestFacts)
  /** It never left, or the provider turned it away: it costs nothing. */
  | { readonly state: 'void' };

/** `withoutTools`: tools were offered, and the model was asked without them, since it takes none. */
type RequestFacts = { readonly withoutTools?: true };

/** The budget has no room for the call, so it must not leave. */
export class BudgetSpentError extends ParleyError {
  readonly scope: BudgetScope;

  constructor(scope: BudgetScope) {
    super('budget_spent', `the ${scope} budget has no room for the call`);
    this.scope = scope;
  }
}

/** Agents whose calls no budget counts; `all`: there is no budget. */
export type UncountedAgents = 'all' | readonly string[];

/**
 * Whether no budget counts the run's calls, so that their rows are opened ahead. A sub-agent spends what the agent at
 * the top has, whom its run doesn't name: its calls are counted as soon as there is any budget.
 */
export function isUncounted(
  agents: UncountedAgents,
  run: { readonly agentId: string; readonly class: string },
): boolean {
  return agents === 'all' || (agents.includes(run.agentId) && !run.class.startsWith('sub-'));
}

/** Prices at their dearest, to bound what a call may cost: micro-dollars per million tokens; sizes in tokens. */
export type CallRate = {
  readonly provider: string;
  readonly model: string;
  readonly input: number;
  readonly output: number;
  /** Longest prompt that the model takes. */
  readonly promptTokens: number;
  readonly answerTokens: number;
};
