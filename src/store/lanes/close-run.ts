import type { Outcome } from '#contracts/outcome.ts';
import type { Tx } from '../command.ts';
import { amendOutcome } from '../delivery/reply-outcome.ts';
import { isOpenItem } from '../open-rows.ts';
import { prepared, type Slots } from '../prepared.ts';
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
  const { endReason, detail = null } = closing;
  await finishRun.run(tx, { runId, endReason, detail, now: tx.now });
  if (outcome === 'answered' || outcome === 'silent') {
    await endAnswered.run(tx, { runId, outcome, outcomeReason });
  } else {
    const rows = tx.db.updateTable('inbox').where('runId', '=', runId).where('state', '=', 'taken');
    await rows.set({ state: 'ended', outcome, outcomeReason }).execute();
  }
  await amendOutcome(tx, runId);
  const next = await lookAhead(tx, lane.key);
  const isKept = next.kind === 'going-on' && closing.mayGoOn;
  await (isKept ? keepLane : leaveLane).run(tx, { laneKey: lane.key, now: tx.now });
  return next.kind === 'going-on' && !closing.mayGoOn ? { kind: 'armed', delayMs: 0 } : next;
}

const finishRun = prepared(
  (db, of: Slots<{ runId: string; endReason: string; detail: string | null; now: number }>) =>
    db
      .updateTable('runs')
      .set({ state: 'finished', endReason: of.endReason, detail: of.detail, endedAt: of.now })
      .where('id', '=', of.runId),
);

/** What was merged into another message of the run keeps that outcome. */
const endAnswered = prepared(
  (db, of: Slots<{ runId: string; outcome: string; outcomeReason: string | null }>) =>
    db
      .updateTable('inbox')
      .set((eb) => ({
        state: 'ended',
        outcome: eb.fn.coalesce('outcome', of.outcome),
        outcomeReason: eb
          .case()
          .when('outcome', 'is', null)
          .then(of.outcomeReason)
          .else(eb.ref('outcomeReason'))
          .end(),
      }))
      .where('runId', '=', of.runId)
      .where('state', '=', 'taken')
      .where((eb) => eb.or([eb('outcome', 'is', null), eb('outcome', '=', 'merged')])),
);

const keepLane = prepared((db, of: Slots<{ laneKey: string; now: number }>) =>
  db.updateTable('lanes').set({ runId: null, lastActivityAt: of.now }).where('key', '=', of.laneKey),
);

const leaveLane = prepared((db, of: Slots<{ laneKey: string; now: number }>) =>
  db
    .updateTable('lanes')
    .set({ runId: null, lastActivityAt: of.now, holder: null, leaseUntil: 0 })
    .where('key', '=', of.laneKey),
);

async function lookAhead(tx: Tx, laneKey: string): Promise<LaneNext> {
  const head = await firstWaiting.first(tx, { laneKey });
  if (!head) return { kind: 'resting' };
  return head.dueAt <= tx.now ? { kind: 'going-on' } : { kind: 'armed', delayMs: head.dueAt - tx.now };
}

const firstWaiting = prepared((db, of: Slots<{ laneKey: string }>) =>
  db
    .selectFrom('inbox')
    .select('dueAt')
    .where('laneKey', '=', of.laneKey)
    .where(isOpenItem())
    .where('state', '=', 'waiting')
    .orderBy('rank')
    .orderBy('seq')
    .limit(1),
);
