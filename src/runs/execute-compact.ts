/** A run that only summarises its session: `/compact`, or a caller's `summarize`. */
import type { AgentStreamEvent } from '#contracts/agent-stream.ts';
import { BudgetSpentError } from '#contracts/call-ledger.ts';
import type { Clock } from '#contracts/clock.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { ModelInfo, SystemBlock } from '#contracts/model.ts';
import type { Outcome } from '#contracts/outcome.ts';
import { routeOf } from '#contracts/route.ts';
import type { TimelineEvent } from '#contracts/timeline.ts';
import { faultText } from '../agent/fault-text.ts';
import type { AgentLoopConfig, LoopLimits } from '../agent/loop-config.ts';
import { openRunScope } from '../agent/run-scope.ts';
import { titlePrompt } from '../agent/system-prompt.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import { endRun } from '../store/lanes/commit-answer.ts';
import type { SummaryInput, SummaryStored } from '../store/lanes/commit-summary.ts';
import type { LaneExit } from '../store/lanes/end-run.ts';
import { handOver } from '../store/lanes/leases.ts';
import { sessionNamedIn } from '../store/lanes/titles.ts';
import { readSessions } from '../store/reads/read-sessions.ts';
import { readCompactHint } from '../store/reads/read-transcript.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';
import type { ActiveRuns } from './active-runs.ts';
import { createBusyNotice } from './busy-notice.ts';
import { type CompactionOrder, type CompactorDeps, compactSession, type Sizes } from './compactor.ts';
import { budgetNotice } from './plan-answer.ts';
import { childRunOf, timeLeft } from './run-history.ts';
import { createStop, type StopController } from './stop-controller.ts';

export type CompactDeps = CompactorDeps & {
  readonly clock: Clock;
  readonly texts: ChatTexts;
  readonly active: ActiveRuns;
  /** How long a run may take, and how long it may still take to finish when the process stops, ms. */
  readonly settings: { readonly limits: { readonly runTimeoutMs: number }; readonly handOverMs: number };
  start(effects: Effects): void;
  publish(laneKey: string, event: TimelineEvent): void;
};

type End = NonNullable<SummaryInput['end']>;

/** Executes the run until it ends, is handed over or is lost, like `executeRun`. */
export async function executeCompact(
  deps: CompactDeps,
  run: ClaimedRun,
  options: { readonly signal: AbortSignal; mayKeepLane(): boolean },
): Promise<LaneExit | { readonly kind: 'handed-over' } | undefined> {
  const { store, active, probe, publish } = deps;
  const { runId, laneKey, epoch } = run;
  const held = { laneKey, epoch, runId };
  const stopping = createStop(deps.settings, options.signal);
  const attempt = { ...held, stop: stopping.stop };
  active.add(attempt);
  if (run.cancelReason !== undefined) active.cancel(runId, run.cancelReason);
  publish(laneKey, { kind: 'run', runId, state: 'started' });
  if (!run.isResumed) deps.stream(laneKey, () => [{ stream: 'lifecycle', runId, phase: 'start' }]);
  try {
    const end = await summarise(deps, run, { stopping, mayKeepLane: options.mayKeepLane });
    if (end === 'lost') return undefined;
    if (end === 'handover') {
      await store.write(handOver, { ...held, modelCalls: deps.calls.endAll() });
      probe.reach('handing-over');
      return { kind: 'handed-over' };
    }
    const ended = 'effects' in end ? end : await store.write(endRun, { ...end, ...held, message: undefined });
    if (!('effects' in end)) deps.calls.stored(end.modelCalls ?? []);
    deps.start(ended.effects);
    deps.stream(laneKey, () => [lifecycleEnd(end, runId)]);
    probe.reach('finished');
    return ended.next;
  } finally {
    stopping.close();
    active.remove(attempt);
    publish(laneKey, { kind: 'run', runId, state: 'ended' });
    publish(laneKey, { kind: 'changed' });
  }
}

function lifecycleEnd(end: EndedSummary | End, runId: string): AgentStreamEvent {
  if ('effects' in end || end.outcome === 'answered') return { stream: 'lifecycle', runId, phase: 'end' };
  const reason = end.outcome === 'cancelled' ? 'aborted' : end.endReason;
  return { stream: 'lifecycle', runId, phase: 'error', reason };
}

type Compaction =
  | { readonly phase: 'start'; readonly oldTokens: number; readonly threshold: number }
  | { readonly phase: 'done' | 'failed' };

type EndedSummary = Extract<SummaryStored, { readonly kind: 'ended' }>;

async function summarise(
  deps: CompactDeps,
  run: ClaimedRun,
  { stopping, mayKeepLane }: { readonly stopping: StopController; mayKeepLane(): boolean },
): Promise<'handover' | 'lost' | EndedSummary | End> {
  const { store, texts, log, limits } = deps;
  const { runId, laneKey } = run;
  const tell = (event: Compaction) => deps.stream(laneKey, () => [{ stream: 'compaction', runId, ...event }]);
  const endOf = (outcome: Outcome, reason: string, text?: string, detail?: string): End => ({
    endReason: outcome === 'answered' ? 'natural' : reason,
    ...{ detail, outcome, outcomeReason: reason, preview: undefined },
    parts: noticeParts(run, text),
    modelCalls: deps.calls.endAll(),
    mayKeepLane: mayKeepLane(),
  });
  const child = await childRunOf(store, run);
  const order: CompactionOrder = {
    run,
    child,
    hint: await store.read(readCompactHint, { runId }),
    onWait: createBusyNotice(deps, run).onWait,
    begin: (oldTokens) => tell({ phase: 'start', oldTokens, threshold: limits.threshold }),
    end: (sizes) => endOf('answered', 'command', fillText(texts.compacted, rounded(sizes))),
  };
  const limitMs = timeLeft(deps.settings.limits.runTimeoutMs, run, child);
  const scope = openRunScope(stopping.signal, deps.clock, limitMs);
  try {
    const done = await compactSession(deps, order, scope.signal);
    if (done.kind === 'too-short') return endOf('answered', 'command', texts.compactTooShort);
    tell({ phase: done.stored.kind === 'ended' ? 'done' : 'failed' });
    if (done.stored.kind === 'ended') return done.stored;
    return endOf('cancelled', done.stored.kind === 'stopped' ? done.stored.reason : 'stop');
  } catch (error) {
    const reason = stopping.reason();
    tell({ phase: 'failed' });
    if (reason === 'handover' || reason === 'lost') return reason;
    if (reason !== undefined) return endOf('cancelled', reason);
    if (scope.abortReason() === 'timeout') return endOf('failed', 'timeout', texts.runTimeout);
    if (!isModelFault(error)) throw error;
    log.warn({ runId, laneKey, error }, 'compaction.failed');
    return endOf('failed', 'compaction_failed', noticeOf(error, texts), faultText(error));
  } finally {
    scope.close();
  }
}

function noticeParts({ target }: ClaimedRun, text: string | undefined): End['parts'] {
  const route = routeOf(target);
  if (route === undefined || text === undefined) return [];
  return [{ route, content: { kind: 'text', text: { text, spans: [] } }, purpose: 'notice' }];
}

/** Names a spent budget, since somebody can raise it. */
function noticeOf(error: unknown, texts: ChatTexts): string {
  if (!(error instanceof BudgetSpentError)) return texts.compactionFailed;
  return budgetNotice(error.scope, texts);
}

/** Rounds the sizes to two digits: they are only estimates. */
function rounded({ oldTokens, newTokens }: Sizes): { readonly before: number; readonly after: number } {
  const round = (tokens: number) => Number(tokens.toPrecision(2));
  return { before: round(oldTokens), after: round(newTokens) };
}

/** Says whether the model is at fault, which leaves the history unchanged; any other fault is left to the caller. */
function isModelFault(error: unknown): boolean {
  return error instanceof ParleyError && /^(?:model|budget)_/.test(error.code);
}

/** Runs that name a session: one short call without tools, abandoned early because nobody waits for it. */
/**
 * Time limit, ms, including waits for a busy model. Only a few of these runs work at once, so none may block the
 * others.
 */
const longestMs = 60_000;
/** Answer limit, tokens: some models think first, and the limit includes that. */
const answerTokens = 1_000;

/** Instructions for a run that names a session. */
export const titleSystem: readonly SystemBlock[] = [{ text: titlePrompt, isStable: true }];

/** Returns the limits of a run that names a session. */
export function titleSettings(
  limits: LoopLimits,
  info: ModelInfo,
): Pick<AgentLoopConfig, 'limits' | 'maxTokens' | 'reasoning'> {
  return {
    limits: { ...limits, runTimeoutMs: Math.min(limits.runTimeoutMs, longestMs) },
    maxTokens: Math.min(info.answerTokens, answerTokens),
    reasoning: 'off',
  };
}

type TitlePublisher = {
  readonly store: Store;
  publish(laneKey: string, event: TimelineEvent): void;
  stream(laneKey: string, make: () => readonly AgentStreamEvent[]): void;
};

/** Notifies the followers of the session that the run in this lane has named, if it has named one. */
export async function publishTitle(
  { store, publish, stream }: TitlePublisher,
  laneKey: string,
): Promise<void> {
  const sessionId = sessionNamedIn(laneKey);
  if (sessionId === undefined) return;
  const [session] = await store.read(readSessions, { ids: [sessionId], limit: 1 });
  if (session?.title === undefined) return;
  const { key, title } = session;
  publish(key, { kind: 'changed' });
  stream(key, () => [{ stream: 'session', sessionId, change: 'title', title }]);
}
