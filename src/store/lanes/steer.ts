import type { AgentMessage } from '#contracts/message.ts';
import type { QueueMode } from '#contracts/queue-settings.ts';
import type { StoreCommand, StoreQuery, Tx } from '../command.ts';
import { json } from '../json.ts';
import { isOpenItem } from '../open-rows.ts';
import { chooseSteers, type SteerDelivery } from './choose-batch.ts';
import { type Lane, lockLaneAt } from './lane-row.ts';
import { type Framing, takeRows } from './take-rows.ts';
import { readWaiting } from './waiting-rows.ts';

/** The run that writes, and the epoch that proves its right to. */
export type Held = { readonly laneKey: string; readonly epoch: number; readonly runId: string };

export type Steering = { readonly framing: Framing; readonly delivery: SteerDelivery };

export type Boundary = {
  /** What the run takes in here; already in the transcript. */
  readonly steers: readonly AgentMessage[];
  readonly cancelReason: string | undefined;
};

/**
 * A boundary of the active run: takes in what was sent meanwhile and reads the cancel flag. Throws
 * `stale_epoch`. A repeat takes nothing twice: a taken row is no longer waiting.
 */
export const takeSteers: StoreCommand<Held & Steering, Boundary> = {
  name: 'takeSteers',
  run: async (tx, input) => steerAt(tx, await lockLaneAt(tx, input.laneKey, input.epoch), input),
};

/**
 * Whether `takeSteers` would find anything: what waits, a cancel flag, another holder. Far cheaper than
 * a commit. It sees the last commit; what arrives after it is found by the next boundary.
 */
export const readNews: StoreQuery<Held, boolean> = {
  query: 'readNews',
  run: async (tx, { laneKey, epoch, runId }) => {
    const waiting = await tx.db
      .selectFrom('inbox')
      .select('id')
      .where('laneKey', '=', laneKey)
      .where(isOpenItem())
      .where('state', '=', 'waiting')
      .limit(1)
      .executeTakeFirst();
    if (waiting) return true;
    const run = await tx.db
      .selectFrom('runs')
      .select(['epoch', 'cancelReason'])
      .where('id', '=', runId)
      .executeTakeFirst();
    return run?.epoch !== epoch || run.cancelReason !== null;
  },
};

export async function steerAt(tx: Tx, lane: Lane, input: Held & Steering): Promise<Boundary> {
  const rows = await readWaiting(tx, lane.key);
  const run = await tx.db
    .selectFrom('runs')
    .select(['route', 'authority', 'cancelReason'])
    .where('id', '=', input.runId)
    .executeTakeFirstOrThrow();
  const cancelReason = run.cancelReason ?? undefined;
  if (rows.length === 0 || cancelReason !== undefined) return { steers: [], cancelReason };
  const { authority } = run;
  const chosen = chooseSteers(rows, {
    mode: lane.mode as QueueMode,
    route: json.route(run.route),
    authority,
    delivery: input.delivery,
    now: tx.now,
  });
  if (chosen.length === 0) return { steers: [], cancelReason };
  const steers = await takeRows(tx, { lane, runId: input.runId, framing: input.framing, rows: chosen });
  // A steer is answered by its run like the message that began it.
  await tx.db
    .updateTable('inbox')
    .set({ outcome: null })
    .where(
      'id',
      'in',
      chosen.map((row) => row.id),
    )
    .execute();
  return { steers, cancelReason };
}
