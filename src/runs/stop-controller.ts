import { hasCode } from '#contracts/errors.ts';
import type { ToolState } from '#contracts/feed.ts';
import type { StopReason } from './active-runs.ts';

/** Asks a run to stop, and remembers why. */
export type StopController = {
  readonly signal: AbortSignal;
  stop(reason: StopReason): void;
  reason(): StopReason | undefined;
  /**
   * Says whether the run was cut to continue elsewhere: calls that this interrupted aren't for this process to finish.
   */
  isHandingOver(): boolean;
  toolIs(callId: string, state: ToolState): void;
  close(): void;
};

/**
 * Creates the controller. The first reason counts, but any other replaces a hand-over, which lets running tools finish.
 */
export function createStop(settings: { readonly handOverMs: number }, shutdown: AbortSignal): StopController {
  const controller = new AbortController();
  let reason: StopReason | undefined;
  const toolsAtWork = new Set<string>();
  let deadline: NodeJS.Timeout | undefined;

  const stop = (why: StopReason) => {
    if (reason !== undefined && reason !== 'handover') return;
    reason = why;
    if (why !== 'handover' || toolsAtWork.size === 0) return controller.abort(why);
    deadline = setTimeout(() => controller.abort(why), settings.handOverMs);
  };
  const onShutdown = () => stop('handover');
  shutdown.addEventListener('abort', onShutdown, { once: true });
  if (shutdown.aborted) onShutdown();

  return {
    signal: controller.signal,
    stop,
    reason: () => reason,
    isHandingOver: () => controller.signal.aborted && (reason === 'handover' || reason === 'lost'),
    toolIs: (callId, state) => {
      // A call that never ran only reports its end.
      if (state === 'started') toolsAtWork.add(callId);
      else toolsAtWork.delete(callId);
      if (reason === 'handover' && toolsAtWork.size === 0) controller.abort(reason);
    },
    close: () => {
      clearTimeout(deadline);
      shutdown.removeEventListener('abort', onShutdown);
    },
  };
}

/** Watches the store's answers to the loop and its tools. */
export type StoreWatch = {
  ask<T>(answer: Promise<T>): Promise<T>;
  /** Throws the store's fault if an earlier question met one. */
  check(): void;
};

/**
 * A run must not end because the store is unreachable or another process has taken its lane. If one of its questions
 * fails, the loop would end the run, or tell the model that a tool failed even though its effect may be stored. `check`
 * throws the fault before either is recorded, so the run stays as stored and the lane's next holder resumes it.
 */
export function createStoreWatch(): StoreWatch {
  let fault: unknown;
  return {
    ask: async (answer) => {
      try {
        return await answer;
      } catch (error) {
        const isStores = (['store_unavailable', 'store_full', 'stale_epoch'] as const).some((code) =>
          hasCode(error, code),
        );
        if (isStores) fault ??= error;
        throw error;
      }
    },
    check: () => {
      if (fault !== undefined) throw fault;
    },
  };
}
