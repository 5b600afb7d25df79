import { type ContextLimits, mostMessages, planCompaction } from './compaction-cut.ts';
import { estimateTokens } from './context-size.ts';
import type { TurnMiddleware } from './loop-config.ts';

/** A context above its threshold that no summary brings below it. Sizes in tokens. */
export type StuckContext = {
  readonly tokens: number;
  readonly threshold: number;
  /** Instructions and tools, which no summary shortens. */
  readonly fixedTokens: number;
  /** Without them a summary would do; otherwise too much of the context is new. */
  readonly isFixed: boolean;
};

/** A summary is worth it if at least so many tokens of messages come before the next one. */
const leastRoom = 500;

/**
 * Has the context compacted before the turn that would be over the threshold, at most once until it is below
 * again. `onStuck`: no summary would bring it below, and the next turn would want another; it goes on as it is.
 */
export function autoCompact(
  { limits }: { readonly limits: ContextLimits },
  onStuck: (stuck: StuckContext) => void,
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
      const fixedTokens = Math.max(0, oldTokens - estimateTokens(messages));
      const room = { ...limits, threshold: threshold - fixedTokens - leastRoom };
      if (planCompaction(messages, undefined, room) !== undefined)
        return { kind: 'compact', oldTokens, threshold };
      const isFixed = planCompaction(messages, undefined, limits) !== undefined;
      onStuck({ tokens: oldTokens, threshold, fixedTokens, isFixed });
      return { kind: 'continue' };
    },
  };
}
