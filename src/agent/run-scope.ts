import type { Clock } from '#contracts/clock.ts';
import type { ToolSpec } from '#contracts/model.ts';
import type { Tool } from '#contracts/tool.ts';
import type { Conversation } from './conversation.ts';
import type { ContextSize } from './fit-context.ts';
import type { AgentContext, AgentLoopConfig, TurnVerdict } from './loop-config.ts';
import type { LoopGuard } from './loop-guard.ts';

/** Why a run was cut short from the outside. */
export type AbortReason = 'aborted' | 'timeout' | 'idle';

/** One signal for everything that a run has open, and the first reason it was aborted for. */
export interface RunScope {
  /** Aborts when the run is cut short, and otherwise when it ends. */
  readonly signal: AbortSignal;
  abortReason(): AbortReason | undefined;
  stop(reason: AbortReason): void;
  /** Ends the scope: releases the clock and the caller's signal, and aborts whatever is still running. */
  close(): void;
}

/** Joins the caller's signal with the run's time limit (`runTimeoutMs`, on the injected clock). */
export function openRunScope(outer: AbortSignal, clock: Clock, runTimeoutMs: number): RunScope {
  const controller = new AbortController();
  let reason: AbortReason | undefined;
  let isClosed = false;

  const stop = (why: AbortReason) => {
    if (isClosed) return;
    reason ??= why;
    controller.abort();
  };
  const onOuterAbort = () => stop('aborted');
  outer.addEventListener('abort', onOuterAbort, { once: true });
  if (outer.aborted) onOuterAbort();
  // `wait` never rejects, and it resolves immediately when the scope ends, so nothing is left behind.
  void clock.wait(runTimeoutMs, controller.signal).then(() => {
    if (!controller.signal.aborted) stop('timeout');
  });

  return {
    signal: controller.signal,
    abortReason: () => reason,
    stop,
    close: () => {
      isClosed = true;
      outer.removeEventListener('abort', onOuterAbort);
      // An explicit reason, because the default is an error whose stack nobody would read.
      controller.abort('the run is over');
    },
  };
}

/** State shared by all turns of a run. */
export type Run = {
  readonly config: AgentLoopConfig;
  readonly system: AgentContext['system'];
  readonly tools: ReadonlyMap<string, Tool>;
  readonly specs: readonly ToolSpec[];
  readonly conversation: Conversation;
  readonly scope: RunScope;
  readonly guard: LoopGuard;
  readonly callIds: Set<string>;
  readonly size: ContextSize;
  /** Cost of this attempt's model calls, micro-dollars. */
  cost: number;
  /** A compaction requested after a turn, to be done before the next one. */
  dueCompaction: Extract<TurnVerdict, { readonly kind: 'compact' }> | undefined;
};
