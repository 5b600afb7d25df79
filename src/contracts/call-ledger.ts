import { ParleyError } from './errors.ts';
import type {
  BudgetScope,
  CacheMiss,
  ModelAnswer,
  ModelInfo,
  ModelPurpose,
  ModelRequest,
  Usage,
} from './model.ts';

/** The ledger of model calls: every attempt has its own row, opened before it is sent and closed once. */
export interface CallLedger {
  /** The run behind the calls, for observers. */
  readonly subject?: CallSubject;
  /** Opens the row before an attempt is sent. Rejects with `BudgetSpentError`, or with what the store throws. */
  open(call: CallOpening): Promise<CallTicket>;
  /**
   * Closes the row; a second end of the same ticket changes nothing. Returns what is held instead of a count that the
   * call can't have had: an estimate, and what it is charged.
   */
  close(ticket: CallTicket, end: CallEnd): Promise<Pick<ModelAnswer, 'usage' | 'cost'> | undefined>;
}

/** The run that calls are made for, and their purpose. */
export type CallSubject = {
  readonly runId: string;
  /** The attempt at the run. */
  readonly epoch: number;
  readonly sessionId: string;
  readonly agentId: string;
  readonly purpose: ModelPurpose;
};

/** An attempt that is about to be sent. */
export type CallOpening = {
  /** Name of the provider. */
  readonly provider: string;
  readonly model: ModelInfo;
  readonly request: ModelRequest;
};

/** An open row of the ledger. */
export type CallTicket = { readonly id: string };

/** How an attempt ended, as far as money is concerned. */
export type CallEnd =
  /** The provider counted it; `cost` in micro-dollars, by the prices of `model`, which answered. */
  | ({
      readonly state: 'settled';
      readonly usage: Usage;
      readonly cost: number;
      readonly model: string;
      /** UTF-8 bytes of the answer, by which an impossible count is replaced; absent: none arrived. */
      readonly writtenBytes?: number;
    } & RequestFacts)
  /** The count is unknown, so it costs its upper bound. `usage`: an estimate for a complete answer by `model`. */
  | ({ readonly state: 'unknown'; readonly usage?: Usage; readonly model?: string } & RequestFacts)
  /**
   * Parley stopped reading the answer: it costs its prompt and what had arrived of the answer, at most its upper bound.
   * `prompt`: its tokens, if the provider has counted them.
   */
  | { readonly state: 'stopped'; readonly prompt?: Usage | undefined; readonly writtenBytes: number }
  /** It was never sent, or the provider refused it: it costs nothing. */
  | { readonly state: 'void' };

/** `withoutTools`: tools were requested, but the model was called without them, since it doesn't support any. */
type RequestFacts = { readonly withoutTools?: true; readonly cacheMiss?: CacheMiss };

/** The budget has no room for the call, so it must not be sent. */
export class BudgetSpentError extends ParleyError {
  readonly scope: BudgetScope;

  constructor(scope: BudgetScope) {
    super('budget_spent', `the ${scope} budget has no room for the call`);
    this.scope = scope;
  }
}

/** Agents whose calls aren't counted by any budget; `all`: there is no budget. */
export type UncountedAgents = 'all' | readonly string[];

/**
 * Whether no budget counts the run's calls, so that their rows can be opened ahead of time. A sub-agent spends the
 * budget of the agent at the top, which its run doesn't name, so its calls are counted as soon as there is any budget.
 */
export function isUncounted(
  agents: UncountedAgents,
  run: { readonly agentId: string; readonly class: string },
): boolean {
  return agents === 'all' || (agents.includes(run.agentId) && !run.class.startsWith('sub-'));
}

/** The highest prices, to bound what a call may cost: micro-dollars per million tokens; sizes in tokens. */
export type CallRate = {
  readonly provider: string;
  readonly model: string;
  readonly input: number;
  readonly output: number;
  /** Longest prompt that the model accepts. */
  readonly promptTokens: number;
  readonly answerTokens: number;
};
