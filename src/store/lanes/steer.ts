import type { Selectable } from 'kysely';
import type { MarkSettings } from '#contracts/mark.ts';
import type { AgentMessage } from '#contracts/message.ts';
import { isSteering, type QueueMode, queueModes } from '#contracts/queue-settings.ts';
import type { RunTarget } from '#contracts/route.ts';
import type { StepTx, StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { findRow, readRow } from '../base/row-access.ts';
import type { RunsTable } from '../base/run-tables.ts';
import { chooseSteers, type SteerDelivery } from '../items/choose-batch.ts';
import { readWaiting, type WaitingRow } from '../items/waiting-items.ts';
import { type Lane, lockLaneAt } from '../rows/lane.ts';
import type { RunFence } from '../rows/run.ts';
import { type TextFraming, takeRows } from './take-rows.ts';

/** How steers are framed, delivered and marked. */
export type SteerContext = {
  readonly framing: TextFraming;
  readonly delivery: SteerDelivery;
  readonly marks?: MarkSettings | undefined;
};

/** The id of an answer that is given up for the messages taken; its stored image, if there is one, goes. */
export type GivenUp = { readonly givenUp?: string | undefined };

/** Input that a run takes between two turns, or before the first word of an answer. */
export type Boundary = {
  /** Messages that the run takes here, already in the transcript. */
  readonly steers: readonly AgentMessage[];
  readonly cancelReason: string | undefined;
};

/**
 * A boundary of the active run: takes the messages sent meanwhile and reads the cancel flag. Throws `stale_epoch`. A
 * repeat takes nothing twice, since a taken row is no longer waiting.
 */
export const takeSteers: StoreCommand<RunFence & SteerContext & GivenUp, Boundary> = {
  name: 'takeSteers',
  run: async (tx, input) => steerAt(tx, await lockLaneAt(tx, input.laneKey, input.epoch), input),
};

/**
 * Says whether `takeSteers` would find anything: a message that may join the run, a cancel flag or another holder. Far
 * cheaper than a commit. It sees the last commit; later arrivals are found at the next boundary.
 */
export const needsBoundary: StoreQuery<RunFence, boolean> = {
  query: 'needsBoundary',
  isShared: true,
  run: async (tx, { laneKey, epoch, runId }) => {
    const found = await atBoundary.first(tx, { laneKey, runId });
    return found?.epoch !== epoch || found.cancelReason !== null || Boolean(found.mayTake);
  },
};

const steeringModes = queueModes.filter(isSteering);

/** Finds at least the messages that `chooseSteers` would choose, possibly more: the step itself chooses. */
const atBoundary = prepared((db, of: QueryParams<{ laneKey: string; runId: string }>) =>
  db
    .selectFrom('runs')
    .select(['epoch', 'cancelReason'])
    .select((eb) =>
      eb
        .exists(
          eb
            .selectFrom('inbox')
            .innerJoin('lanes', 'lanes.key', 'inbox.laneKey')
            .select('inbox.id')
            .where('inbox.laneKey', '=', of.laneKey)
            .where(isOpenItem())
            .where('inbox.state', '=', 'waiting')
            .where('inbox.kind', '=', 'message')
            .where((row) =>
              row.or([
                row('inbox.reach', '=', 'always'),
                row('inbox.reach', '=', 'mode').and('lanes.mode', 'in', steeringModes),
              ]),
            ),
        )
        .as('mayTake'),
    )
    .where('id', '=', of.runId),
);

export async function steerAt(
  tx: StepTx,
  lane: Lane,
  input: RunFence & SteerContext & GivenUp,
): Promise<Boundary> {
  const run = await readSteered(tx, input.runId);
  if (run.cancelReason !== undefined) return { steers: [], cancelReason: run.cancelReason };
  const { runId, framing, delivery, marks } = input;
  const waiting = await readWaiting(tx, lane.key);
  const rows = chooseFor(lane, { run, waiting, delivery, now: tx.now });
  if (rows.length > 0 && input.givenUp !== undefined) await dropImage(tx, input.givenUp);
  const steers = await takeRows(tx, { lane, runId, framing, rows, marks, ...asSteers(lane) });
  return { steers, cancelReason: undefined };
}

/** Removes the unfinished image of an answer, which is written again behind the messages that it then answers. */
async function dropImage(tx: Tx, id: string): Promise<void> {
  const image = await findRow(tx, 'transcript', id, ['sessionId', 'position', 'isFinished']);
  if (image?.isFinished !== 0) return;
  await tx.db.deleteFrom('transcript').where('id', '=', id).execute();
  // Unless a note has been appended meanwhile, its position is free again.
  await tx.db
    .updateTable('sessions')
    .set((eb) => ({ messageCount: eb('messageCount', '-', 1) }))
    .where('id', '=', image.sessionId)
    .where('messageCount', '=', image.position)
    .execute();
}

/** Returns the `takeRows` options for steers in the lane's mode. */
export function asSteers(lane: Lane): { readonly merges: false; readonly isKept: boolean } {
  return { merges: false, isKept: lane.mode === 'steer-backlog' };
}

/** Facts that decide whether a message joins the run, and where its parts continue. */
export type SteerTarget = {
  readonly target: RunTarget;
  readonly authority: string;
  readonly cancelReason: string | undefined;
  readonly nextOrdinal: number;
  /** Source key of the item of a task that it works on. */
  readonly taskItem: string | null;
};

export async function readSteered(tx: Tx, runId: string): Promise<SteerTarget> {
  const columns = ['route', 'authority', 'cancelReason', 'nextOrdinal', 'taskItem'] as const;
  return steerTarget(await readRow(tx, 'runs', runId, columns));
}

type RunRow = Pick<
  Selectable<RunsTable>,
  'route' | 'authority' | 'cancelReason' | 'nextOrdinal' | 'taskItem'
>;

export function steerTarget({ route, cancelReason, ...run }: RunRow): SteerTarget {
  const { authority, nextOrdinal, taskItem } = run;
  const target = json.target(route);
  return { target, authority, cancelReason: cancelReason ?? undefined, nextOrdinal, taskItem };
}

/** Returns the items of `waiting` that the run takes. The caller must have checked that the run isn't cancelled. */
export function chooseFor(
  lane: Lane,
  input: {
    readonly run: SteerTarget;
    readonly waiting: readonly WaitingRow[];
    readonly delivery: SteerDelivery;
    readonly now: number;
  },
): readonly WaitingRow[] {
  const { run, waiting, delivery, now } = input;
  const { target, authority } = run;
  return chooseSteers(waiting, { mode: lane.mode as QueueMode, target, authority, delivery, now });
}
