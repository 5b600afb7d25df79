import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { lockLineage } from '../children/lock-lineage.ts';
import type { Actor } from '../items/actor.ts';
import { cancel } from '../items/cancel-item.ts';
import { dropRetained } from '../items/retained-steers.ts';
import type { Lane } from '../rows/lane-row.ts';
import { stop } from './stop.ts';

/** Result of a cancel: whether there was anything to cancel, and what the commit makes due. */
export type SessionCancelled = { readonly isCancelled: boolean; readonly effects: Effects };

/** Work to cancel: all of a session, or one run of it. */
export type CancelSessionInput = {
  readonly laneKey: string;
  /** Reserved for a message: nothing happens once that has ended, and while it waits it alone is cancelled. */
  readonly runId?: string;
};

/**
 * Stops the session's run, no matter who began it, with its sub-agents, and cancels what programs have sent and still
 * waits. Safe to repeat; with `runId` also when the lane works on something else by then.
 */
export const cancelSession: StoreCommand<CancelSessionInput, SessionCancelled> = {
  name: 'cancelSession',
  run: async (tx, { laneKey, runId }) => {
    const effects = noEffects();
    const lane = await lockLineage(tx, laneKey);
    if (!lane) return { isCancelled: false, effects };
    if (runId !== undefined) return cancelReserved(tx, lane, { runId, effects });
    const scene = { account: 'api', senderId: '', effects };
    const result = await stop(tx, lane, { scene, input: { isPrivileged: true, isAll: false } });
    return { isCancelled: result === 'done', effects };
  },
};

async function cancelReserved(
  tx: StepTx,
  lane: Lane,
  { runId, effects }: { readonly runId: string; readonly effects: Effects },
): Promise<SessionCancelled> {
  const item = await readReserved(tx, lane.key, runId);
  if (!item) return { isCancelled: false, effects };
  const { kind } = await cancel(tx, lane, { number: item.seq, actor: program, effects });
  if (kind === 'done') return { isCancelled: true, effects };
  const isAtWork = item.state === 'taken' && item.runId === lane.runId;
  if (!isAtWork || lane.runId === null) return { isCancelled: false, effects };
  await dropRetained(tx, lane.runId, ({ id }) => id === item.id);
  // No message is from this sender: what others have waiting goes on.
  const scene = { account: 'api', senderId: runId, effects };
  await stop(tx, lane, { scene, input: { isPrivileged: true, isAll: false } });
  return { isCancelled: true, effects };
}

/** The holder of the access token. */
const program: Actor = { ref: 'api', people: [], mayChangeAny: true, mayPromoteOwn: true };

function readReserved(tx: Tx, laneKey: string, runId: string) {
  return tx.db
    .selectFrom('inbox')
    .select(['id', 'seq', 'state', 'runId'])
    .where('laneKey', '=', laneKey)
    .where('reservedRunId', '=', runId)
    .executeTakeFirst();
}
