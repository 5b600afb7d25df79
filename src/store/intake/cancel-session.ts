import type { StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { lockLineage } from '../children/lock-lineage.ts';
import { stop } from './stop.ts';

/** Result of a cancel: whether there was anything to cancel, and what the commit makes due. */
export type SessionCancelled = { readonly isCancelled: boolean; readonly effects: Effects };

/**
 * Stops the session's run, no matter who began it, with its sub-agents, and cancels what programs have sent and still
 * waits. Safe to repeat.
 */
export const cancelSession: StoreCommand<{ readonly laneKey: string }, SessionCancelled> = {
  name: 'cancelSession',
  run: async (tx, { laneKey }) => {
    const effects = noEffects();
    const lane = await lockLineage(tx, laneKey);
    if (!lane) return { isCancelled: false, effects };
    const scene = { account: 'api', senderId: '', effects };
    const result = await stop(tx, lane, { scene, input: { isPrivileged: true, isAll: false } });
    return { isCancelled: result === 'done', effects };
  },
};
