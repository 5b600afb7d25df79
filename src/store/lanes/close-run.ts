import type { Outcome } from '#contracts/outcome.ts';
import type { Tx } from '../base/command.ts';
import { prepared, type Slots } from '../base/prepared.ts';
import type { Lane } from '../rows/lane-row.ts';

export type Closing = {
  readonly runId: string;
  readonly endReason: string;
  readonly detail?: string | undefined;
  /** Of what it took and did not answer; absent when nothing of that kind is left. */
  readonly outcome?: Outcome;
  readonly outcomeReason?: string | undefined;
  /** How many parts its last step has stored, under the next ordinals and places of the timeline. */
  readonly parts: number;
  /** Whether the holder may go straight on to what is due, or gives way to other lanes. */
  readonly mayGoOn: boolean;
};

/** How a lane is left: there is no fourth case. */
export type LaneNext =
  | { readonly kind: 'resting' }
  | { readonly kind: 'going-on' }
  | { readonly kind: 'armed'; readonly delayMs: number };

/**
 * Ends the run and leaves the lane resting, going on or armed. `waiting` is what waits in the lane, read
 * under its lock, so a message either came before (and is seen here) or finds no run.
 */
export async function closeRun(
  tx: Tx,
  lane: Lane,
  closing: Closing,
  waiting: readonly { readonly dueAt: number }[],
): Promise<LaneNext> {
  const { runId, endReason, detail = null, outcome, outcomeReason = null, parts } = closing;
  await finishRun.run(tx, { runId, endReason, detail, parts, now: tx.now });
  if (outcome !== undefined) {
    const rows = tx.db.updateTable('inbox').where('runId', '=', runId).where('state', '=', 'taken');
    await rows.set({ state: 'ended', outcome, outcomeReason }).execute();
  }
  const next = lookAhead(waiting, tx.now);
  const isKept = next.kind === 'going-on' && closing.mayGoOn;
  await (isKept ? keepLane : leaveLane).run(tx, { laneKey: lane.key, parts, now: tx.now });
  return next.kind === 'going-on' && !closing.mayGoOn ? { kind: 'armed', delayMs: 0 } : next;
}

type Finish = { runId: string; endReason: string; detail: string | null; parts: number; now: number };

const finishRun = prepared((db, of: Slots<Finish>) =>
  db
    .updateTable('runs')
    .set((eb) => ({
      state: 'finished',
      endReason: of.endReason,
      detail: of.detail,
      endedAt: of.now,
      nextOrdinal: eb('nextOrdinal', '+', of.parts),
    }))
    .where('id', '=', of.runId),
);

export type AnsweredRows = {
  readonly runId: string;
  /** The message that answers them: what becomes of its parts amends the outcome. */
  readonly answer: string;
  readonly outcome: Outcome;
  readonly outcomeReason: string | undefined;
};

/** Sets the provisional outcome of everything that the run has taken and not answered before. */
export async function endAnswered(tx: Tx, { outcomeReason, ...rows }: AnsweredRows): Promise<void> {
  await endTaken.run(tx, { ...rows, outcomeReason: outcomeReason ?? null });
}

type Ended = { runId: string; answer: string; outcome: string; outcomeReason: string | null };

/** What was merged into another message of the run keeps that outcome. */
const endTaken = prepared((db, of: Slots<Ended>) =>
  db
    .updateTable('inbox')
    .set((eb) => ({
      state: 'ended',
      answer: of.answer,
      outcome: eb.fn.coalesce('outcome', of.outcome),
      outcomeReason: eb
        .case()
        .when('outcome', 'is', null)
        .then(of.outcomeReason)
        .else(eb.ref('outcomeReason'))
        .end(),
    }))
    .where('runId', '=', of.runId)
    .where('state', '=', 'taken'),
);

type Leaving = { laneKey: string; parts: number; now: number };

const keepLane = prepared((db, of: Slots<Leaving>) =>
  db
    .updateTable('lanes')
    .set((eb) => ({ runId: null, lastActivityAt: of.now, nextSeq: eb('nextSeq', '+', of.parts) }))
    .where('key', '=', of.laneKey),
);

const leaveLane = prepared((db, of: Slots<Leaving>) =>
  db
    .updateTable('lanes')
    .set((eb) => ({
      runId: null,
      lastActivityAt: of.now,
      nextSeq: eb('nextSeq', '+', of.parts),
      holder: null,
      leaseUntil: 0,
    }))
    .where('key', '=', of.laneKey),
);

function lookAhead([head]: readonly { readonly dueAt: number }[], now: number): LaneNext {
  if (!head) return { kind: 'resting' };
  return head.dueAt <= now ? { kind: 'going-on' } : { kind: 'armed', delayMs: head.dueAt - now };
}
