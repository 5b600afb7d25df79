/** Keeps a run's context within its model's window. */
import type { Alert } from '#contracts/owner-alert.ts';
import { autoCompact, type StuckContext } from '../agent/auto-compact.ts';
import { contextLimits } from '../agent/compaction-cut.ts';
import type { AgentLoopConfig } from '../agent/loop-config.ts';
import type { Models } from '../models/models.ts';
import { raiseAlert } from '../store/alerts/alert.ts';
import type { ChildRun } from '../store/children/child.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { BusyNotice } from './busy-notice.ts';
import type { RunCalls } from './call-ledger.ts';
import { type CompactorDeps, compactSession } from './compactor.ts';
import type { RunFeed } from './run-feed.ts';
import { readRunContext, shownMessages } from './run-history.ts';
import type { StoreWatch } from './stop-controller.ts';

export type RunCompactionDeps = Omit<CompactorDeps, 'model' | 'calls' | 'limits'> & {
  readonly models: Models;
};

/** Returns what a compaction needs. The run's model sets the window, and also summarizes unless another model is set. */
export function compactorOf(
  { store, log, probe, models, hooks }: RunCompactionDeps,
  { agentId, model }: ClaimedRun,
  calls: RunCalls,
): CompactorDeps {
  const summarizer = models.stackFor(models.nameFor(agentId, 'summary', model), calls.beside('summary'));
  return {
    ...{ store, log, probe, calls, hooks },
    model: summarizer,
    // Read at each use: a refusal may have taught that the window is smaller.
    get limits() {
      return contextLimits(models.stackFor(model).model().contextWindow);
    },
  };
}

/** Returns the functions by which the loop has its context summarized and reads it again. */
export function compactionOf(
  deps: RunCompactionDeps,
  run: ClaimedRun,
  input: {
    readonly child: ChildRun | undefined;
    readonly calls: RunCalls;
    readonly watch: StoreWatch;
    readonly busy: BusyNotice;
    readonly feed: RunFeed;
  },
): Required<Pick<AgentLoopConfig, 'middleware' | 'compact' | 'reloadMessages'>> {
  const { child, calls, watch, busy, feed } = input;
  const { log, store } = deps;
  const { runId, laneKey } = run;
  const compactor = compactorOf(deps, run, calls);
  return {
    middleware: [autoCompact(compactor, (stuck) => notifyStuck(deps, run, stuck))],
    compact: async (reason, signal) => {
      const { limits } = compactor;
      const tail = reason === 'overflow' ? Math.floor(limits.tail / 2) : limits.tail;
      const deeper = { ...compactor, limits: { ...limits, tail } };
      const order = { run, child, onWait: busy.onWait, progress: feed.progress };
      try {
        const done = await watch.ask(compactSession(deeper, order, signal));
        return done.kind === 'compacted' ? 'compacted' : 'failed';
      } catch (error) {
        if (!signal.aborted) log.warn({ runId, laneKey, reason, error }, 'compaction.failed');
        throw error;
      }
    },
    reloadMessages: async () => shownMessages(await watch.ask(readRunContext(store, run, child))),
  };
}

/** Tells the owner what to do if the instructions leave no room for the conversation. */
function notifyStuck(
  { store, log }: RunCompactionDeps,
  { runId, laneKey, model, agentId }: ClaimedRun,
  { isFixed, ...stuck }: StuckContext,
): void {
  log.warn({ runId, laneKey, ...stuck }, 'context.stuck');
  if (!isFixed) return;
  store.writeAlong(raiseAlert, contextFull(agentId, { ...stuck, model }));
}

type FullContext = Pick<StuckContext, 'fixedTokens' | 'threshold'> & { readonly model: string };

/** The notice that an agent's instructions and tools leave a conversation no room. Sizes in tokens. */
export function contextFull(agentId: string, { model, fixedTokens, threshold }: FullContext): Alert {
  const round = (tokens: number) => String(Number(tokens.toPrecision(2)));
  const values = { model, fixed: round(fixedTokens), threshold: round(threshold) };
  return { kind: 'context-full', subject: agentId, values };
}
