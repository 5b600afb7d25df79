import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { lockLineage } from '../children/lock-lineage.ts';
import type { Actor } from '../items/actor.ts';
import { cancel } from '../items/cancel-item.ts';
import { dropRetained } from '../items/retained-steers.ts';
import type { Lane } from '../rows/lane-row.ts';
import { stop } from './stop.ts';

/** Result of a cancel: whether there was anything to cancel, and the work that the commit makes due. */
export type SessionCancelled = { readonly isCancelled: boolean; readonly effects: Effects };

/** Work to cancel: all of a session, or one of its runs. */
export type CancelSessionInput = {
  readonly laneKey: string;
  /** The run reserved for a message. While the message waits, only it is cancelled; after its end nothing happens. */
  readonly runId?: string;
};

/**
 * Stops the session's run and its sub-agents, no matter who began it, and cancels waiting messages that programs have
 * sent. Safe to repeat; with `runId` even if the lane is working on something else by then.
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
  // No message has this sender, so other people's waiting messages remain.
  const scene = { account: 'api', senderId: runId, effects };
  await stop(tx, lane, { scene, input: { isPrivileged: true, isAll: false } });
  return { isCancelled: true, effects };
}

/** The actor for requests with the access token. */
const program: Actor = { ref: 'api', people: [], mayChangeAny: true, mayPromoteOwn: true };

function readReserved(tx: Tx, laneKey: string, runId: string) {
  return tx.db
    .selectFrom('inbox')
    .select(['id', 'seq', 'state', 'runId'])
    .where('laneKey', '=', laneKey)
    .where('reservedRunId', '=', runId)
    .executeTakeFirst();
}
