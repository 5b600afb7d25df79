import type { Outcome } from '#contracts/outcome.ts';
import type { Tx } from '../command.ts';
import { amendOutcome } from '../delivery/reply-outcome.ts';
import { isOpenItem } from '../open-rows.ts';
import type { Lane } from './lane-row.ts';

export type Closing = {
  readonly runId: string;
  readonly endReason: string;
  readonly outcome: Outcome;
  readonly outcomeReason?: string | undefined;
  readonly detail?: string | undefined;
  /** Whether the holder may go straight on to what is due, or gives way to other lanes. */
  readonly mayGoOn: boolean;
};

/** How a lane is left: there is no fourth case. */
export type LaneNext =
  | { readonly kind: 'resting' }
  | { readonly kind: 'going-on' }
  | { readonly kind: 'armed'; readonly delayMs: number };

/**
 * Ends the run, sets the provisional outcomes, and leaves the lane resting, going on or armed. Runs
 * under the lane's lock, so a message either came before (and is seen here) or finds no run.
 */
export async function closeRun(tx: Tx, lane: Lane, closing: Closing): Promise<LaneNext> {
  const { runId, outcome, outcomeReason = null } = closing;
  await tx.db
    .updateTable('runs')
    .set({ state: 'finished', endReason: closing.endReason, detail: closing.detail ?? null, endedAt: tx.now })
    .where('id', '=', runId)
    .execute();
  const rows = tx.db.updateTable('inbox').where('runId', '=', runId).where('state', '=', 'taken');
  if (outcome === 'answered' || outcome === 'silent') {
    await rows.set({ state: 'ended' }).where('outcome', '=', 'merged').execute();
    await rows.set({ state: 'ended', outcome, outcomeReason }).where('outcome', 'is', null).execute();
  } else {
    await rows.set({ state: 'ended', outcome, outcomeReason }).execute();
  }
  await amendOutcome(tx, runId);
  const next = await lookAhead(tx, lane.key);
  const isKept = next.kind === 'going-on' && closing.mayGoOn;
  await tx.db
    .updateTable('lanes')
    .set({ runId: null, lastActivityAt: tx.now, ...(!isKept && { holder: null, leaseUntil: 0 }) })
    .where('key', '=', lane.key)
    .execute();
  return next.kind === 'going-on' && !closing.mayGoOn ? { kind: 'armed', delayMs: 0 } : next;
}

async function lookAhead(tx: Tx, laneKey: string): Promise<LaneNext> {
  const head = await tx.db
    .selectFrom('inbox')
    .select('dueAt')
    .where('laneKey', '=', laneKey)
    .where(isOpenItem())
    .where('state', '=', 'waiting')
    .orderBy('rank')
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst();
  if (!head) return { kind: 'resting' };
  return head.dueAt <= tx.now ? { kind: 'going-on' } : { kind: 'armed', delayMs: head.dueAt - tx.now };
}
