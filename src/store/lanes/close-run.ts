import type { Outcome } from '#contracts/outcome.ts';
import type { Tx } from '../base/command.ts';
import { prepared, type Slots } from '../base/prepared.ts';
import { endTaken } from '../rows/item-states.ts';
import type { Lane } from '../rows/lane-row.ts';

export type Closing = {
  readonly runId: string;
  readonly endReason: string;
  readonly detail?: string | undefined;
  /** The end of items it took and didn't answer; absent when there are none. */
  readonly outcome?: Outcome;
  readonly outcomeReason?: string | undefined;
  /** How many parts its last step has stored, under the next ordinals and places of the timeline. */
  readonly parts: number;
  /** Whether the holder may continue with due items, or yields to other lanes. */
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
  if (outcome !== undefined) await endTaken(tx, runId, { outcome, outcomeReason });
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
