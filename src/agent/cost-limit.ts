import type { TurnMiddleware } from './loop-config.ts';

/**
 * Stops a run once its model calls have cost at least this much, micro-dollars, unless the answer is complete. The call
 * that crosses the limit is still paid for.
 */
export function costLimit(maxCost: number): TurnMiddleware {
  return {
    afterTurn: async ({ stats, messages }) => {
      const isComplete = messages.at(-1)?.role !== 'tool';
      if (isComplete || stats.cost < maxCost) return { kind: 'continue' };
      const [spent, allowed] = [stats.cost, maxCost].map((cost) => (cost / 1_000_000).toFixed(6));
      return { kind: 'stop', detail: `it has cost $${spent} of $${allowed}` };
    },
  };
}
