import { type ContextLimits, mostMessages, planCompaction } from './compaction-cut.ts';
import type { TurnMiddleware } from './loop-config.ts';

/**
 * Has the context compacted before the turn that would be over the threshold, at most once until it is below
 * again. `onStuck`: nothing can be summarised, since too much of it is new; the turn goes on as it is.
 */
export function autoCompact(
  { limits }: { readonly limits: ContextLimits },
  onStuck: (oldTokens: number) => void,
): TurnMiddleware {
  const { threshold } = limits;
  let isAbove = false;
  return {
    beforeTurn: async ({ stats, messages }) => {
      const oldTokens = stats.contextTokens;
      const wasAbove = isAbove;
      isAbove = oldTokens > threshold || messages.length > mostMessages;
      const hasCrossed = isAbove && !wasAbove;
      if (!hasCrossed) return { kind: 'continue' };
      if (planCompaction(messages, undefined, limits) !== undefined)
        return { kind: 'compact', oldTokens, threshold };
      onStuck(oldTokens);
      return { kind: 'continue' };
    },
  };
}
