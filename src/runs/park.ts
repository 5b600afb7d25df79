import type { CallQuestion } from '#contracts/agent-event.ts';
import type { Clock } from '#contracts/clock.ts';
import { transcriptId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import { isErrorIn } from '#contracts/message.ts';
import type { BudgetScope } from '#contracts/model.ts';
import type { Probe } from '#contracts/probe.ts';
import { routeOf } from '#contracts/route.ts';
import type { SettleCall } from '#contracts/tool.ts';
import { boundResult, resultMessage } from '../agent/tool-result.ts';
import { newApprovalId } from '../commands/one-time-code.ts';
import type { Hooks } from '../hooks/hooks.ts';
import { budgetNames } from '../models/budget-rules.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import {
  type ParkInput,
  type ParkOutcome,
  type ParkResult,
  parkForApproval,
  parkForBudget,
  parkRun,
  readStartedCall,
  settleParkedCall,
} from '../store/lanes/park-run.ts';
import type { BudgetRefusal } from '../store/money/budget.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';
import type { RunBudgets, RunCalls } from './call-ledger.ts';
import type { LiveView } from './live-view.ts';
import type { RunFeed } from './run-feed.ts';
import { persistHookOf } from './run-hooks.ts';

export type ParkDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  start(effects: Effects): void;
  /** Lets runs continue whose budgets have room. */
  freedRoom(): void;
};

/** Why a call waits, and for how long at most, ms. */
export type WaitingCall = { readonly reason: string; readonly waitMs?: number };

type MayWait = Omit<WaitingRun, 'calls'> & {
  readonly waitsFor: readonly WaitingCall[];
  /** Calls that a person has to approve. */
  readonly questions: readonly CallQuestion[];
  /** The budget that has no room for the run. */
  readonly refusal: BudgetRefusal | undefined;
  readonly calls: RunCalls;
};

type WaitingRun = {
  /** In source order. */
  readonly calls: readonly WaitingCall[];
  /** When this attempt at the run began. */
  readonly startedAt: number;
  readonly live: LiveView;
  readonly feed: Pick<RunFeed, 'publish'>;
};

/** Longest usual wait, ms: a person who hasn't answered within a week is asked again by the model, or not at all. */
const usualWaitMs = 7 * 86_400_000;

/** Parks a run that waits for something; returns undefined for any other. */
export async function parkIfWaiting(
  deps: ParkDeps & { readonly texts: ChatTexts; readonly approvals: ApprovalSettings },
  run: ClaimedRun,
  { waitsFor, questions, refusal, calls, ...rest }: MayWait,
): Promise<ParkOutcome | undefined> {
  if (questions.length > 0) return askPeople(deps, run, { ...rest, questions });
  if (waitsFor.length > 0) return park(deps, run, { ...rest, calls: waitsFor });
  return refusal && waitForRoom(deps, run, { ...rest, refusal, calls });
}

export type ApprovalSettings = {
  /** How long a question about a call stays open, ms. */
  readonly validMs: number;
  /** Owners named in the configuration, `channel:peer`; one of them is asked about the calls of a run without a chat. */
  readonly owners: readonly string[];
};

/** Asks about calls and parks their run, which also waits for none of its other calls. */
async function askPeople(
  deps: ParkDeps & { readonly approvals: ApprovalSettings },
  run: ClaimedRun,
  { questions, ...waiting }: Omit<WaitingRun, 'calls'> & { readonly questions: readonly CallQuestion[] },
): Promise<ParkOutcome> {
  const { validMs, owners } = deps.approvals;
  const asking = {
    ...{ validMs, owners, route: routeOf(run.target), runAuthority: run.authority },
    questions: questions.map((question) => ({ id: newApprovalId(), ...question })),
  };
  const pause = { ...waiting, reason: 'an approval', waitMs: validMs };
  const left = await closeQuietly(deps, run, pause, (parking) =>
    deps.store.write(parkForApproval, { ...parking, ...asking }),
  );
  deps.probe.reach('approval-asked');
  return left;
}

/** Parks a run whose calls wait for something outside: it gives up its slot, lease, typing indicator and clock. */
async function park(deps: ParkDeps, run: ClaimedRun, waiting: WaitingRun): Promise<ParkOutcome> {
  const { calls } = waiting;
  const reason = [...new Set(calls.map((call) => call.reason))].join(', ');
  // The claim that ends one wait ends them all.
  const waitMs = Math.min(...calls.map((call) => call.waitMs ?? usualWaitMs));
  return closeQuietly(deps, run, { ...waiting, reason, waitMs }, (parking) =>
    deps.store.write(parkRun, parking),
  );
}

type Pause = Omit<WaitingRun, 'calls'> & Pick<ParkInput, 'reason' | 'waitMs'>;

async function closeQuietly(
  { clock, log, probe, start }: ParkDeps,
  run: ClaimedRun,
  { startedAt, live, feed, reason, waitMs }: Pause,
  write: (parking: ParkInput) => Promise<ParkResult>,
): Promise<ParkOutcome> {
  const { runId, laneKey, epoch } = run;
  // The shown message is recorded before another process continues with it.
  await live.finishPreview();
  const workedMs = run.workedMs + Math.max(0, clock.now() - startedAt);
  const { kind, effects } = await write({ runId, laneKey, epoch, reason, workedMs, waitMs });
  start(effects);
  log.info({ runId, laneKey, reason, workedMs, outcome: kind }, 'run.parked');
  if (kind === 'parked') feed.publish({ kind: 'parked', runId, reason });
  probe.reach('parked');
  return { kind };
}

/** Longest wait for a budget that isn't renewed daily, ms. */
const roomWaitMs = 86_400_000;

/**
 * Says whether a run waits for room in a budget. Room reserved by other calls is freed on its own, but a spent budget
 * must be raised by an owner, and somebody must be there to read that the run waits. A run waits in vain only once, and
 * title runs never wait.
 */
export async function mayWaitForRoom(
  { kind, target, authority, hasWaited }: ClaimedRun,
  { isHeld }: BudgetRefusal,
  budgets: Pick<RunBudgets, 'hasOwner'> | undefined,
): Promise<boolean> {
  if (hasWaited || kind !== 'turn') return false;
  if (isHeld) return true;
  if (routeOf(target) === undefined) return false;
  return authority === 'owner' || ((await budgets?.hasOwner()) ?? false);
}

/** Parks a run until its budget has room, and tells its person how to get that. */
async function waitForRoom(
  deps: ParkDeps & { readonly texts: ChatTexts },
  run: ClaimedRun,
  waiting: Omit<WaitingRun, 'calls'> & {
    readonly refusal: BudgetRefusal;
    readonly calls: RunCalls;
  },
): Promise<ParkOutcome> {
  const { refusal, calls } = waiting;
  const { scope, isHeld, endsAt } = refusal;
  const route = isHeld ? undefined : routeOf(run.target);
  const notice = route && { route, text: pauseNotice(run, scope, deps.texts) };
  const waitMs = endsAt === undefined ? roomWaitMs : Math.max(0, endsAt - deps.clock.now());
  const pause = { ...waiting, reason: `room in the ${scope} budget`, waitMs };
  const left = await closeQuietly(deps, run, pause, (parking) =>
    deps.store.write(parkForBudget, { ...parking, refusal, modelCalls: calls.endAll(), notice }),
  );
  // Other calls may have returned room after the refusal and before this run could be found waiting.
  if (isHeld) deps.freedRoom();
  return left;
}

function pauseNotice({ authority }: ClaimedRun, scope: BudgetScope, texts: ChatTexts): string {
  const text = authority === 'owner' ? texts.budgetPausedOwner : texts.budgetPaused;
  return fillText(text, { which: texts[budgetNames[scope]], scope });
}

/** Creates the only way to answer a parked call. Rejects if the store is unreachable. */
export function createSettleCall(deps: {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly hooks?: Hooks;
  start(effects: Effects): void;
}): SettleCall {
  const { store, clock, log, probe, start, hooks } = deps;
  return async ({ runId, callId }, { isError = false, ...output }) => {
    const name = await store.read(readStartedCall, { runId, callId });
    const call = { id: callId, name: name ?? '', input: '', finished: true };
    const result = boundResult({ output, isError });
    const { parts: given } = resultMessage(call, result, { id: transcriptId(''), time: clock.now() });
    const of = { runId, call: { id: callId, name: call.name }, source: 'settled' } as const;
    const parts = persistHookOf(hooks)?.(of, given) ?? given;
    const settling = { runId, callId, isError: isErrorIn(parts), parts };
    const { settlement, laneKey, effects } = await store.write(settleParkedCall, settling);
    log.info({ runId, callId, laneKey, settlement }, 'call.settled');
    if (settlement === 'settled') probe.reach('settled');
    start(effects);
    return settlement;
  };
}
