/**
 * The ledger of one attempt at a run. If no budget applies, the row for a turn's first model call is opened by the
 * preceding commit, and the call's end waits here for the commit that stores the turn. Every other call reserves its
 * maximum cost in its own commit. Rows still open when the run ends or is handed over are closed with it.
 */

import { rememberSuccess } from '#channel-kit/keep-recent.ts';
import {
  BudgetSpentError,
  type CallEnd,
  type CallLedger,
  type CallOpening,
  type CallRate,
  type CallSubject,
  type CallTicket,
  isUncounted,
  type UncountedAgents,
} from '#contracts/call-ledger.ts';
import type { Clock } from '#contracts/clock.ts';
import type { ModelInfo, ModelPurpose } from '#contracts/model.ts';
import type { Probe } from '#contracts/probe.ts';
import type { BudgetRules } from '../models/budget-rules.ts';
import {
  estimateStopped,
  isMiscount,
  type KnownPrompt,
  knownPrompt,
  type PromptText,
  promptBound,
  promptTextOf,
  rateOf,
} from '../models/call-bound.ts';
import { costOf } from '../models/prices.ts';
import type { IdentityLinks } from '../sessions/identities.ts';
import { readOwnerRoute } from '../store/alerts/owner-route.ts';
import type { Store } from '../store/base/command.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { BudgetLimit, BudgetRefusal } from '../store/money/budget.ts';
import {
  boundOf,
  callIdOf,
  type ModelCallEnd,
  type NewModelCall,
  reserveCall,
} from '../store/money/model-call.ts';
import { readPayer } from '../store/reads/read-usage.ts';

/** Dependencies of an attempt's ledger. */
export type RunCallsDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: Probe;
  /** Purpose of the run's own turns. */
  readonly purpose: ModelPurpose;
  /** Rate that bounds the cost of the run's model calls, so that rows can be opened ahead. If undefined, none are. */
  readonly rate: CallRate | undefined;
  /** Returns the budgets that apply to the run now; empty if no budget is configured. */
  limits(): Promise<readonly BudgetLimit[]>;
  /** Called once a call has returned what it reserved in a budget, for runs that wait for it. */
  freedRoom(): void;
};

/** The model calls of an attempt, and the part of them that the next commit must store. */
export type RunCalls = CallLedger & {
  /** Records calls for another purpose in the same ledger. Each of their rows is opened in its own commit. */
  beside(purpose: ModelPurpose): CallLedger;
  /** Returns calls whose end isn't stored yet. */
  ended(): readonly ModelCallEnd[];
  /** Returns the same plus all calls still open, whose results will never arrive. */
  endAll(): readonly ModelCallEnd[];
  /** Call it once these ends are committed. */
  stored(ends: readonly ModelCallEnd[]): void;
  /** Returns the row of the next turn's first call, for the commit before it; undefined under budgets. */
  next(): NewModelCall | undefined;
  /** Call it once that row is committed. */
  opened(call: NewModelCall | undefined): void;
  /** Returns the budget that had no room for the last call; undefined if that call was made. */
  refused(): BudgetRefusal | undefined;
};

type Try = {
  readonly openedAt: number;
  readonly purpose: ModelPurpose;
  /** It reserves an amount in a budget. */
  readonly holdsRoom?: boolean;
  /** Absent once the call has ended, since they reference the request. */
  terms?: CallTerms | undefined;
  end?: ModelCallEnd;
};

type MostTokens = { readonly prompt: number; readonly answer: number };

type CallTerms = {
  readonly rate: CallRate;
  readonly model: ModelInfo;
  /** Returns the prompt, and the most tokens that the call can have. */
  size(): { readonly prompt: PromptText; readonly most: MostTokens };
  /** The row has no bound yet. */
  readonly isUnreserved?: true;
};

/** Creates the ledger of a claimed attempt. */
export function createRunCalls(deps: RunCallsDeps, run: ClaimedRun): RunCalls {
  return new CallBook(deps, run);
}

class CallBook implements RunCalls {
  readonly subject: CallSubject;
  readonly #deps: RunCallsDeps;
  readonly #run: ClaimedRun;
  readonly #tries = new Map<string, Try>();
  #count: number;
  /** The row opened for the next call. */
  #ready: string | undefined;
  #known: KnownPrompt | undefined;
  #refused: BudgetRefusal | undefined;

  constructor(deps: RunCallsDeps, run: ClaimedRun) {
    this.#deps = deps;
    this.#run = run;
    const { runId, epoch, sessionId, agentId } = run;
    this.subject = { runId, epoch, sessionId, agentId, purpose: deps.purpose };
    this.#ready = run.openCall;
    this.#count = run.openCall === undefined ? 0 : 1;
  }

  async open(call: CallOpening): Promise<CallTicket> {
    const limits = await this.#deps.limits();
    const { purpose } = this.#deps;
    const id =
      this.#ready !== undefined && limits.length === 0
        ? this.#useReady(call)
        : await this.#reserve(call, { limits, purpose });
    this.#deps.probe.reach('call-reserved');
    return { id: id ?? '' };
  }

  beside(purpose: ModelPurpose): CallLedger {
    return {
      subject: { ...this.subject, purpose },
      open: async (call) => {
        const id = await this.#reserve(call, { limits: await this.#deps.limits(), purpose });
        this.#deps.probe.reach('call-reserved');
        return { id };
      },
      close: (ticket, end) => this.close(ticket, end),
    };
  }

  #useReady(call: CallOpening): string | undefined {
    const id = this.#ready;
    this.#ready = undefined;
    const { clock, purpose } = this.#deps;
    if (id !== undefined) this.#tries.set(id, { openedAt: clock.now(), purpose, terms: unreserved(call) });
    return id;
  }

  async #reserve(
    { provider, model, request }: CallOpening,
    { limits, purpose }: { readonly limits: readonly BudgetLimit[]; readonly purpose: ModelPurpose },
  ): Promise<string> {
    const { store, clock } = this.#deps;
    const { laneKey, epoch, runId, sessionId } = this.#run;
    this.#count += 1;
    const id = callIdOf(epoch, this.#count);
    const prompt = promptTextOf(request);
    const rate = rateOf(provider, model);
    const known = purpose === this.#deps.purpose ? this.#known : undefined;
    const tokens = { prompt: promptBound(prompt, model.id, known), answer: request.maxTokens };
    const call = { id, runId, sessionId, purpose, rate, reserved: boundOf(rate, tokens) };
    const ends = this.ended();
    const terms: CallTerms = { rate, model, size: () => ({ prompt, most: tokens }) };
    const opened: Try = { openedAt: clock.now(), purpose, holdsRoom: limits.length > 0, terms };
    // If the commit succeeds but its response is lost, the row belongs to a call that was never made.
    this.#tries.set(id, { ...opened, end: { id, latencyMs: 0, end: { state: 'void' } } });
    const reserved = await store.write(reserveCall, { laneKey, epoch, runId, call, limits, ends });
    this.stored(ends);
    this.#refused = reserved.kind === 'spent' ? reserved.refusal : undefined;
    if (reserved.kind === 'open') this.#tries.set(id, opened);
    else this.#tries.delete(id);
    if (reserved.kind === 'spent') throw new BudgetSpentError(reserved.refusal.scope);
    return id;
  }

  refused(): BudgetRefusal | undefined {
    return this.#refused;
  }

  async close({ id }: CallTicket, end: CallEnd): ReturnType<CallLedger['close']> {
    const each = this.#tries.get(id);
    if (each === undefined || each.end !== undefined) return undefined;
    const { terms } = each;
    each.end = this.#endOf(id, each, end);
    each.terms = undefined;
    const isCounted = each.end.end.state === 'settled' && end.state === 'settled';
    if (isCounted && terms && !terms.isUnreserved && each.purpose === this.#deps.purpose)
      this.#known = knownPrompt(terms.size().prompt, terms.model.id, end.usage);
    return heldInstead(each.end);
  }

  ended(): readonly ModelCallEnd[] {
    return [...this.#tries.values()].flatMap(({ end }) => end ?? []);
  }

  endAll(): readonly ModelCallEnd[] {
    const unused = this.#ready;
    return [
      ...[...this.#tries].map(([id, each]) => each.end ?? this.#endOf(id, each, { state: 'unknown' })),
      ...(unused === undefined ? [] : [{ id: unused, latencyMs: 0, end: { state: 'void' } } as const]),
    ];
  }

  stored(ends: readonly ModelCallEnd[]): void {
    const hasFreed = ends.some(({ id }) => this.#tries.get(id)?.holdsRoom);
    for (const { id } of ends) this.#tries.delete(id);
    if (hasFreed) this.#deps.freedRoom();
  }

  next(): NewModelCall | undefined {
    const { rate, purpose } = this.#deps;
    const { runId, sessionId, epoch } = this.#run;
    if (rate === undefined || this.#ready !== undefined) return undefined;
    return { id: callIdOf(epoch, this.#count + 1), runId, sessionId, purpose, rate };
  }

  opened(call: NewModelCall | undefined): void {
    if (call === undefined) return;
    this.#count += 1;
    this.#ready = call.id;
  }

  #endOf(id: string, { openedAt, terms }: Try, end: CallEnd): ModelCallEnd {
    const latencyMs = Math.max(0, this.#deps.clock.now() - openedAt);
    return { id, latencyMs, ...priceEnd(end, terms) };
  }
}

/** Decides what a call is charged: as counted, by what had arrived, or at its bound. Never more than its bound. */
function priceEnd(end: CallEnd, terms: CallTerms | undefined): Omit<ModelCallEnd, 'id' | 'latencyMs'> {
  if (end.state === 'void' || terms === undefined)
    return { end: end.state === 'stopped' ? { state: 'unknown' } : end };
  const { rate, model, size } = terms;
  const { prompt, most } = size();
  if (end.state === 'settled' && !isMiscount(end.usage, most)) return { end };
  const window = terms.isUnreserved ? model.contextWindow : most.prompt;
  const bound = boundOf(rate, { ...most, prompt: Math.min(most.prompt, window) });
  if (end.state === 'settled') {
    const { usage: told, cost: _, writtenBytes = 0, ...answered } = end;
    const counted = isMiscount({ ...told, outputTokens: 0 }, most) ? undefined : told;
    const usage = estimateStopped(prompt, { counted, writtenBytes });
    return { end: { ...answered, state: 'unknown', usage }, bound, doubt: 'miscounted' };
  }
  if (end.state === 'unknown') return { end, ...(terms.isUnreserved && { bound }) };
  const usage = estimateStopped(prompt, { counted: end.prompt, writtenBytes: end.writtenBytes });
  const cost = Math.min(bound, costOf(usage, model.prices));
  return { end: { state: 'unknown', usage, model: model.id }, bound: cost, doubt: 'stopped' };
}

/** Returns what a miscounted call holds instead of its count. */
function heldInstead({ end, bound, doubt }: ModelCallEnd): Awaited<ReturnType<CallLedger['close']>> {
  if (doubt !== 'miscounted' || end.state !== 'unknown' || end.usage === undefined) return undefined;
  return { usage: end.usage, cost: bound ?? 0 };
}

/** Returns the terms of a call that reserves nothing. */
function unreserved({ provider, model, request }: CallOpening): CallTerms {
  const size = () => {
    const prompt = promptTextOf(request);
    return { prompt, most: { prompt: promptBound(prompt, model.id, undefined), answer: request.maxTokens } };
  };
  return { rate: rateOf(provider, model), model, size, isUnreserved: true };
}

/** The budgets that runs count against. */
export interface RunBudgets {
  readonly uncounted: UncountedAgents;
  /** Returns a function that yields one run's budgets at the time of each call, since each day has its own. */
  limitsFor(run: Pick<ClaimedRun, 'runId' | 'agentId' | 'class'>): () => Promise<readonly BudgetLimit[]>;
  /** Says whether an owner has written, who could raise a budget in chat. */
  hasOwner(): Promise<boolean>;
}

/** Creates the budgets of this process's runs. */
export function createRunBudgets(deps: {
  readonly store: Pick<Store, 'read'>;
  readonly clock: Clock;
  readonly rules: BudgetRules;
  /** Rules of the configuration, which a reload changes in place. */
  readonly policy: {
    readonly access: { readonly owners: ReadonlySet<string> };
    /** Accounts of one person. */
    readonly identityLinks: IdentityLinks;
  };
}): RunBudgets {
  const { store, clock, rules, policy } = deps;
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
