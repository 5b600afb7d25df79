import { type ContextLimits, maxMessages, planCompaction } from './compaction-cut.ts';
import { estimateTokens } from './fit-context.ts';
import type { TurnMiddleware } from './loop-config.ts';

/** A context above its threshold that no summary can bring below it. Sizes in tokens. */
export type StuckContext = {
  readonly tokens: number;
  readonly threshold: number;
  /** Instructions and tools, which no summary shortens. */
  readonly fixedTokens: number;
  /** True if a summary would suffice without the fixed tokens; otherwise too much of the context is new. */
  readonly isFixed: boolean;
};

/** A summary pays off only if at least this many tokens of messages fit before the next one. */
const minRoom = 500;

/**
 * Requests a compaction before a turn that would exceed the threshold, at most once until the context is below it
 * again. `onStuck` is called instead if no summary would bring the context below the threshold, since the next turn
 * would only need another one; the run then continues with the context unchanged.
 */
export function autoCompact(
  terms: { readonly limits: ContextLimits },
  onStuck: (stuck: StuckContext) => void,
): TurnMiddleware {
  let isAbove = false;
  return {
    beforeTurn: async ({ stats, messages }) => {
      // Read each time: a refusal may have taught that the model's window is smaller.
      const { limits } = terms;
      const { threshold } = limits;
      const oldTokens = stats.contextTokens;
      const wasAbove = isAbove;
      isAbove = oldTokens > threshold || messages.length > maxMessages;
      const hasCrossed = isAbove && !wasAbove;
      if (!hasCrossed) return { kind: 'continue' };
      const fixedTokens = Math.max(0, oldTokens - estimateTokens(messages));
      const room = { ...limits, threshold: threshold - fixedTokens - minRoom };
      if (planCompaction(messages, undefined, room) !== undefined)
        return { kind: 'compact', oldTokens, threshold };
      const isFixed = planCompaction(messages, undefined, limits) !== undefined;
      onStuck({ tokens: oldTokens, threshold, fixedTokens, isFixed });
      return { kind: 'continue' };
    },
  };
}
