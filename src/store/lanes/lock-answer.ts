import { ParleyError } from '#contracts/errors.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { lockAbove } from '../children/lock-lineage.ts';
import { type Conversation, lockForReply } from '../delivery/insert-reply.ts';
import { readWaiting, type WaitingRow } from '../items/waiting-rows.ts';
import type { OpenCalls } from '../money/model-calls.ts';
import { type Lane, lockLaneAt } from '../rows/lane-row.ts';
import type { RunFence } from '../rows/run-fence.ts';
import type { StoredImage } from './assistant-row.ts';
import { type SteerTarget, steerTarget } from './steer.ts';

/** Everything that committing a run's answer depends on, read under its lane's lock. */
export type AnswerFacts = {
  readonly lane: Lane;
  readonly waiting: readonly WaitingRow[];
  readonly run: SteerTarget;
  /** An earlier image of the answer, and the run's open model calls. */
  readonly before: { readonly known: StoredImage | undefined; readonly open: OpenCalls };
  /** The conversation that the reply goes to. */
  readonly seen: Conversation | undefined;
};

type Answer = { readonly messageId: string; readonly route: ReplyRoute | undefined };

/**
 * Locks the run's lane and its ancestors, then the conversation that the answer goes to, and reads what the answer
 * depends on: all in one round trip, the lane's lock first. Throws `stale_epoch`.
 */
export async function lockForAnswer(
  tx: Tx,
  { laneKey, epoch, runId }: RunFence,
  { messageId, route }: Answer,
): Promise<AnswerFacts> {
  await lockAbove(tx, laneKey);
  const [lane, waiting, rows, seen] = await Promise.all([
    lockLaneAt(tx, laneKey, epoch),
    readWaiting(tx, laneKey),
    runWithCalls.all(tx, { runId, messageId }),
    route && lockForReply(tx, route),
  ]);
  const [run] = rows;
  if (!run) throw new ParleyError('internal', `There is no run ${runId}.`);
  const { isFinished } = run;
  const open = rows.flatMap(({ id, reserved, budgetKeys }) =>
    id === null ? [] : [[id, { reserved: reserved ?? 0, budgetKeys }] as const],
  );
  const known = isFinished === null ? undefined : { isFinished };
  return { lane, waiting, run: steerTarget(run), before: { known, open: new Map(open) }, seen };
}

/** The run, once for each of its open calls, or once if it has none. */
const runWithCalls = prepared((db, of: QueryParams<{ runId: string; messageId: string }>) =>
  db
    .selectFrom('runs')
    .leftJoin('modelCalls', (join) =>
      join.onRef('modelCalls.runId', '=', 'runs.id').on('modelCalls.state', '=', 'open'),
    )
    .select(['runs.route', 'runs.authority', 'runs.cancelReason', 'runs.nextOrdinal'])
    .select(['modelCalls.id', 'modelCalls.reserved', 'modelCalls.budgetKeys'])
    .select((eb) =>
      eb
        .selectFrom('transcript')
        .select('transcript.isFinished')
        .where('transcript.id', '=', of.messageId)
        .$asScalar()
        .as('isFinished'),
    )
    .where('runs.id', '=', of.runId),
);
