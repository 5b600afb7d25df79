/** A run that only summarizes its session: `/compact`, or a caller's `summarize`. */
import { BudgetSpentError } from '#contracts/call-ledger.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { ModelInfo, SystemBlock } from '#contracts/model.ts';
import type { Outcome } from '#contracts/outcome.ts';
import type { Probe } from '#contracts/probe.ts';
import { routeOf } from '#contracts/route.ts';
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
import { RunFeed, type RunFeedDeps } from './run-feed.ts';
import { childRunOf, timeLeft } from './run-history.ts';
import { createStop, type StopController } from './stop-controller.ts';

export type CompactDeps = RunFeedDeps & {
  readonly store: Store;
  readonly log: Log;
  readonly probe: Probe;
  readonly texts: ChatTexts;
  readonly active: ActiveRuns;
  /** How long a run may take, and how long it may still take to finish when the process stops, ms. */
  readonly settings: { readonly limits: { readonly runTimeoutMs: number }; readonly handOverMs: number };
  start(effects: Effects): void;
};

type End = NonNullable<SummaryInput['end']>;

/** Executes the run until it ends, is handed over or is lost, like `executeRun`. */
export async function executeCompact(
  deps: CompactDeps,
  run: ClaimedRun,
  options: { readonly signal: AbortSignal; mayKeepLane(): boolean; readonly compactor: CompactorDeps },
): Promise<LaneExit | { readonly kind: 'handed-over' } | undefined> {
  const { store, active, probe } = deps;
  const { mayKeepLane, compactor } = options;
  const { runId, laneKey, epoch } = run;
  const held = { laneKey, epoch, runId };
  const stopping = createStop(deps.settings, options.signal);
  const attempt = { ...held, stop: stopping.stop };
  active.add(attempt);
  if (run.cancelReason !== undefined) active.cancel(runId, run.cancelReason);
  const feed = new RunFeed(deps, run);
  feed.begin();
  try {
    const end = await summarize(deps, run, { stopping, feed, mayKeepLane, compactor });
    if (end === 'lost') return undefined;
    if (end === 'handover') {
      await store.write(handOver, { ...held, modelCalls: compactor.calls.endAll() });
      probe.reach('handing-over');
      return { kind: 'handed-over' };
    }
    const ended = 'effects' in end ? end : await store.write(endRun, { ...end, ...held, message: undefined });
    if (!('effects' in end)) compactor.calls.stored(end.modelCalls ?? []);
    deps.start(ended.effects);
    feed.end(reasonOf(end));
    probe.reach('finished');
    return ended.next;
  } finally {
    stopping.close();
    active.remove(attempt);
    feed.close();
  }
}

/** Returns why the end isn't a natural one; undefined if it is. */
function reasonOf(end: EndedSummary | End): string | undefined {
  if ('effects' in end || end.outcome === 'answered') return undefined;
  return end.outcome === 'cancelled' ? 'aborted' : end.endReason;
}

type EndedSummary = Extract<SummaryStored, { readonly kind: 'ended' }>;

async function summarize(
  deps: CompactDeps,
  run: ClaimedRun,
  input: {
    readonly stopping: StopController;
    readonly feed: RunFeed;
    mayKeepLane(): boolean;
    readonly compactor: CompactorDeps;
  },
): Promise<'handover' | 'lost' | EndedSummary | End> {
  const { stopping, feed, mayKeepLane, compactor } = input;
  const { store, texts, log } = deps;
  const { runId, laneKey } = run;
  const tell = (state: 'done' | 'failed') => feed.publish({ kind: 'compaction', runId, state });
  const endOf = (outcome: Outcome, reason: string, text?: string, detail?: string): End => ({
    endReason: outcome === 'answered' ? 'natural' : reason,
    ...{ detail, outcome, outcomeReason: reason, preview: undefined },
    parts: noticeParts(run, text),
    modelCalls: compactor.calls.endAll(),
    mayKeepLane: mayKeepLane(),
  });
  const child = await childRunOf(store, run);
  const order: CompactionOrder = {
    run,
    child,
    hint: await store.read(readCompactHint, { runId }),
    onWait: createBusyNotice(deps, run).onWait,
    begin: (oldTokens) => {
      const { threshold } = compactor.limits;
      feed.publish({ kind: 'compaction', runId, state: 'started', oldTokens, threshold });
    },
    progress: feed.progress,
    end: (sizes) => endOf('answered', 'command', fillText(texts.compacted, rounded(sizes))),
  };
  const limitMs = timeLeft(deps.settings.limits.runTimeoutMs, run, child);
  const scope = openRunScope(stopping.signal, deps.clock, limitMs);
  try {
    const done = await compactSession(compactor, order, scope.signal);
    if (done.kind === 'too-short') return endOf('answered', 'command', texts.compactTooShort);
    tell(done.stored.kind === 'ended' ? 'done' : 'failed');
    if (done.stored.kind === 'ended') return done.stored;
    return endOf('cancelled', done.stored.kind === 'stopped' ? done.stored.reason : 'stop');
  } catch (error) {
    const reason = stopping.reason();
    tell('failed');
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

// Runs that name a session: one short call without tools, with a short time limit.

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

/** Notifies the followers of the session that the run in this lane has named, if it has named one. */
export async function publishTitle(
  { store, feed }: { readonly store: Store } & Pick<RunFeedDeps, 'feed'>,
  laneKey: string,
): Promise<void> {
  const sessionId = sessionNamedIn(laneKey);
  if (sessionId === undefined) return;
  const [session] = await store.read(readSessions, { ids: [sessionId], limit: 1 });
  if (session?.title === undefined) return;
  const { key, title } = session;
  feed.publish(key, { kind: 'changed' });
  feed.publish(key, { kind: 'title', sessionId, title });
}
