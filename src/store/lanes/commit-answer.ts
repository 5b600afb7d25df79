import { ParleyError } from '#contracts/errors.ts';
import type { Outcome } from '#contracts/outcome.ts';
import type { Part } from '#contracts/part.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { alertFailedRun } from '../alerts/alert.ts';
import type { StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { changeRow, plus } from '../base/row-access.ts';
import { lockAbove, lockLineageAt } from '../children/child.ts';
import type { ClaimedDelivery, DeliveryPolicy } from '../delivery/claim-delivery.ts';
import { type Conversation, insertReply, lockForReply } from '../delivery/insert-reply.ts';
import { closePreview, type NewPart } from '../delivery/part.ts';
import { requeueRetained } from '../items/retained-steers.ts';
import { readWaiting, type WaitingRow } from '../items/waiting-items.ts';
import {
  chargeCost,
  closeLostCalls,
  closeModelCalls,
  type ModelCallEnd,
  type NewModelCall,
  type OpenCalls,
  openModelCall,
} from '../money/model-call.ts';
import { deliveryFailed, endAnswered } from '../rows/item.ts';
import { type Lane, lockLaneAt } from '../rows/lane.ts';
import type { RunFence } from '../rows/run.ts';
import { type ClaimedRun, type ClaimInput, claimLane } from './claim-lane.ts';
import { type AssistantImage, type StoredImage, writeAssistant } from './commit-turn.ts';
import { closeRun, type LaneExit, stopChildrenOf } from './end-run.ts';
import { joinBlocks } from './live-parts.ts';
import {
  asSteers,
  type Boundary,
  chooseFor,
  readSteered,
  type SteerContext,
  type SteerTarget,
  steerTarget,
} from './steer.ts';
import { takeRows } from './take-rows.ts';

type AnswerFacts = RunFence & {
  /** Every model call that isn't closed yet. */
  readonly modelCalls?: readonly ModelCallEnd[];
  /** All of them go to the run's route. */
  readonly parts: readonly Part[];
  /** Blocks that were sent of the answer, by key; the parts continue them. */
  readonly blocks?: readonly string[];
  /** The preview that the parts replace or delete. */
  readonly preview: string | undefined;
  readonly outcome: Outcome;
  readonly outcomeReason?: string;
  readonly mayKeepLane: boolean;
};

/** The final message of a run, with the parts to send. */
export type CommitAnswerInput = AnswerFacts &
  SteerContext & {
    readonly message: AssistantImage;
    /** The first model call of the turn that answers steers, if no budget counts it. */
    readonly nextCall?: NewModelCall | undefined;
    /** Claims the reply's first part for a holder that sends it immediately; absent if another process sends. */
    readonly sender?: DeliveryPolicy | undefined;
    /** Claims the lane's next run as this one ends; absent if the holder yields. */
    readonly claims?: Omit<ClaimInput, 'laneKey' | 'framing'> | undefined;
  };

/** The result of committing an answer. */
export type AnswerResult = Boundary & {
  /** How the lane was left; undefined if a steer extends the run or the run was asked to stop. */
  readonly next: LaneExit | undefined;
  readonly effects: Effects;
  readonly claimed: ClaimedDelivery | undefined;
  /** The lane's next run, claimed for the holder, with its messages taken. */
  readonly nextRun?: ClaimedRun | undefined;
};

/**
 * Steps 6 and 7 for a message without tool calls. Stores the message, its reply parts and the outcome of what it
 * answers, and either takes the steers that extend the run or ends it, in one transaction. A message either arrives
 * before this step and is taken, or arrives after it and starts the next run. For a run that has been asked to stop,
 * nothing is written: it is left for `endRun`. The finished message is the idempotency key of its reply.
 */
export const commitAnswer: StoreCommand<CommitAnswerInput, AnswerResult> = {
  name: 'commitAnswer',
  run: async (tx, input) => {
    const { message, runId, modelCalls: calls, mayKeepLane, framing, marks } = input;
    const answer = { messageId: message.id, route: input.parts[0]?.route };
    const { lane, waiting, run, before, seen } = await lockForAnswer(tx, input, answer);
    const effects = noEffects();
    const { cancelReason } = run;
    const stopped = { steers: [], cancelReason, next: undefined, effects, claimed: undefined };
    if (cancelReason !== undefined) return stopped;
    const writing = { message, runId, isFinished: true, before, ...(calls && { calls }) };
    const isFirst = await writeAssistant(tx, writing);
    const parts = isFirst ? partsOf(lane, run, { ...input, answer: message.id }) : [];
    const reply = await insertReply(tx, parts, { sender: input.sender, seen });
    if (reply.waiting !== undefined) effects.deliveries.push(reply.waiting);
    await closePreview(tx, input.preview);
    await alertFailedRun(tx, { ...input, parts });
    const chosen = chooseFor(lane, { run, waiting, delivery: input.delivery, now: tx.now });
    const { claimed } = reply;
    const { outcome, outcomeReason } = reply.isUnreachable ? undeliverable(input) : input;
    await endAnswered(tx, { runId, answer: message.id, outcome, outcomeReason });
    await joinBlocks(tx, { runId, answer: message.id, blocks: input.blocks ?? [] });
    if (chosen.length > 0) {
      await extendAnsweredRun(tx, { runId, laneKey: lane.key, parts: parts.length });
      const steers = await takeRows(tx, { lane, runId, framing, rows: chosen, marks, ...asSteers(lane) });
      if (input.nextCall) await openModelCall(tx, input.nextCall);
      return { steers, cancelReason, next: undefined, effects, claimed };
    }
    const { taskItem } = run;
    const closing = { runId, taskItem, endReason: 'natural', parts: parts.length, mayKeepLane, effects };
    const next = await closeRun(tx, lane, closing, waiting);
    // A command may stop sub-agents, whose lanes must be locked before a conversation: the holder claims it separately.
    const goesOn = next.kind === 'continuing' && waiting[0]?.kind === 'message';
    const nextRun = goesOn ? await claimNext(tx, input) : undefined;
    return { steers: [], cancelReason, next, effects, claimed, nextRun };
  },
};

/** Claims the lane's next run in the same commit. If nothing is claimed here, the holder looks at the lane itself. */
async function claimNext(
  tx: StepTx,
  { laneKey, framing, claims }: Pick<CommitAnswerInput, 'laneKey' | 'framing' | 'claims'>,
): Promise<ClaimedRun | undefined> {
  if (claims === undefined) return undefined;
  const claim = await claimLane.run(tx, { ...claims, framing, laneKey });
  return claim.kind === 'run' ? claim.run : undefined;
}

/** Returns the outcome of an answer whose conversation is known to be unreachable before any part was attempted. */
function undeliverable({
  outcome,
  outcomeReason,
}: CommitAnswerInput): Pick<CommitAnswerInput, 'outcome' | 'outcomeReason'> {
  if (outcome === 'answered') return { outcome: 'failed', outcomeReason: deliveryFailed };
  return outcomeReason === undefined ? { outcome } : { outcome, outcomeReason };
}

/**
 * Returns the parts keyed by run and ordinal, with their positions in the lane's timeline; the step that closes or
 * extends the run advances both counters. A run without a route sends nothing.
 */
function partsOf(
  lane: Lane,
  run: SteerTarget,
  input: {
    readonly runId: string;
    readonly answer: string;
    readonly parts: readonly Part[];
  },
): readonly NewPart[] {
  const { runId, answer, parts } = input;
  if (run.target === 'record') return [];
  const ordinal = run.nextOrdinal;
  return parts.map((part, index) => ({
    ...part,
    key: `${runId}:${ordinal + index}`,
    runId,
    answer,
    timeline: { laneKey: lane.key, seq: lane.nextSeq + index },
  }));
}

/** Resets the attempts of a run that has answered: it made progress, so only later crashes count against it. */
async function extendAnsweredRun(
  tx: Tx,
  { runId, laneKey, parts }: { runId: string; laneKey: string; parts: number },
): Promise<void> {
  await changeRow(tx, 'runs', runId, { attempts: 1, nextOrdinal: plus(parts) });
  if (parts > 0) await changeRow(tx, 'lanes', laneKey, { nextSeq: plus(parts) });
}

export type RunEndInput = AnswerFacts & {
  readonly endReason: string;
  readonly detail: string | undefined;
  /** The message that was cut off, with its finish part. */
  readonly message: AssistantImage | undefined;
};

/**
 * Step 7 for a run that didn't end naturally: timeout, abort, error. Items it has answered stay answered; the other
 * items it took end with `outcome`. The lane still drains.
 */
export const endRun: StoreCommand<RunEndInput, { readonly next: LaneExit; readonly effects: Effects }> = {
  name: 'endRun',
  run: async (tx, input) => {
    const lane = await lockLineageAt(tx, input.laneKey, input.epoch);
    const { runId, message, modelCalls = [] } = input;
    const effects = noEffects();
    const run = await readSteered(tx, runId);
    if (input.endReason !== 'natural') await stopChildrenOf(tx, lane, runId, effects);
    await chargeCost(tx, lane.sessionId, await closeModelCalls(tx, runId, modelCalls));
    await closeLostCalls(tx, runId);
    await requeueRetained(tx, { id: runId, laneKey: lane.key });
    if (message) await writeAssistant(tx, { message, runId, isFinished: true });
    const parts = partsOf(lane, run, { ...input, answer: `${runId}:end` });
    const { waiting } = await insertReply(tx, parts, {});
    if (waiting !== undefined) effects.deliveries.push(waiting);
    await closePreview(tx, input.preview);
    await alertFailedRun(tx, { ...input, parts });
    const closing = { ...input, taskItem: run.taskItem, parts: parts.length, effects };
    return { next: await closeRun(tx, lane, closing, await readWaiting(tx, lane.key)), effects };
  },
};

/** Everything that committing a run's answer depends on, read under its lane's lock. */
type LockedAnswer = {
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
async function lockForAnswer(
  tx: Tx,
  { laneKey, epoch, runId }: RunFence,
  { messageId, route }: Answer,
): Promise<LockedAnswer> {
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
    .select(['runs.route', 'runs.authority', 'runs.cancelReason', 'runs.nextOrdinal', 'runs.taskItem'])
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
