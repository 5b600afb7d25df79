import type { MessageId } from '#contracts/ids.ts';
import { neverStarted, unknownOutcome } from '#contracts/message.ts';
import { failedReaction, type OutboundContent } from '#contracts/outbound.ts';
import type { Outcome } from '#contracts/outcome.ts';
import { type ReplyRoute, routeOf } from '#contracts/route.ts';
import { alertFailedRun } from '../alerts/alert.ts';
import { endOpenQuestions } from '../approvals/call-approval.ts';
import type { StepTx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { json } from '../base/json.ts';
import type { ToolCallsTable } from '../base/run-tables.ts';
import { endRunOfChild, isStoppingChild, stopTree } from '../children/stop-tree.ts';
import { endRunOfTask } from '../children/subtasks.ts';
import { closePreview, insertPart } from '../delivery/part.ts';
import { requeueRetained } from '../items/retained-steers.ts';
import { readWaiting } from '../items/waiting-items.ts';
import { closeLostCalls } from '../money/model-call.ts';
import { endTaken } from '../rows/item.ts';
import { endLaneRun, type Lane, raiseEpoch, takeSeq } from '../rows/lane.ts';
import { finishRun } from '../rows/run.ts';
import { endCall, wordResult } from '../rows/tool-call.ts';
import { findPreview, interruptUnfinished, type LivePreview } from './recover-run.ts';
import { endTitleRun } from './titles.ts';

type GivingUp = {
  readonly run: { readonly id: string; readonly route: string | null; readonly taskItem: string | null };
  readonly text: string;
  readonly endReason: 'gave_up' | 'stop';
  /** Tells the owner why the run didn't end naturally. */
  readonly detail: string;
};

/**
 * Ends a run that crashed too often or didn't stop in time, and leaves nothing of it open, so that its lane continues.
 * In a direct chat `text` takes the place of the answer; a group sees ⚠, and the owner is told why. `lane` carries the
 * new epoch.
 */
export async function giveUpRun(
  tx: StepTx,
  lane: Lane,
  { run, text, endReason, detail }: GivingUp,
): Promise<Effects> {
  const effects = noEffects();
  await stopChildrenOf(tx, lane, run.id, effects);
  await closeLostCalls(tx, run.id);
  await interruptUnfinished(tx, run.id);
  for (const call of await readOpenCalls(tx, run.id)) {
    await endCall(tx, call.messageId, wordResult(tx, { runId: run.id, ...call, content: contentOf(call) }));
  }
  await endOpenQuestions(tx, run.id, 'void', effects);
  const preview = await findPreview(tx, run.id);
  await closePreview(tx, preview?.key);
  const route = routeOf(json.target(run.route));
  const parts = route ? noticesOf(lane, { route, text, preview }) : [];
  for (const [index, part] of parts.entries()) {
    const key = index === 0 ? `${run.id}:gave-up` : `${run.id}:gave-up:${index}`;
    const timeline = { laneKey: lane.key, seq: await takeSeq(tx, lane.key) };
    effects.deliveries.push(await insertPart(tx, { ...part, key, runId: run.id, timeline }));
  }
  await alertFailedRun(tx, { runId: run.id, outcomeReason: endReason, parts });
  await requeueRetained(tx, { id: run.id, laneKey: lane.key });
  await raiseEpoch(tx, lane.key, lane.epoch);
  const closing = {
    runId: run.id,
    taskItem: run.taskItem,
    endReason,
    detail,
    outcome: endReason === 'stop' ? 'cancelled' : 'failed',
    outcomeReason: endReason,
    parts: 0,
    mayKeepLane: false,
    effects,
  } as const;
  await closeRun(tx, lane, closing, await readWaiting(tx, lane.key));
  effects.gaveUp.push({ laneKey: lane.key, runId: run.id, reason: endReason });
  return effects;
}

type FailureScene = {
  readonly route: ReplyRoute;
  readonly text: string;
  readonly preview: LivePreview | undefined;
};

/** Returns the same notices as for other failures; whether the network has reactions is known only when sending. */
function noticesOf({ chatKind }: Lane, { route, text, preview }: FailureScene) {
  const notice = (content: OutboundContent) => ({ route, content, purpose: 'notice' }) as const;
  // The platform's own id, which the store keeps as plain text.
  const shown = preview?.messageId as MessageId | undefined;
  const { replyTo } = route;
  if (chatKind === 'group' && replyTo !== undefined) {
    const sign = notice({ kind: 'reaction', messageId: replyTo, emoji: failedReaction });
    return shown === undefined ? [sign] : [notice({ kind: 'delete', messageId: shown }), sign];
  }
  const line = { text, spans: [] };
  if (shown === undefined) return [notice({ kind: 'text', text: line })];
  return [notice({ kind: 'edit', messageId: shown, text: line })];
}

type OpenCall = Pick<ToolCallsTable, 'messageId' | 'callId' | 'name' | 'state'>;

function readOpenCalls(tx: StepTx, runId: string): Promise<readonly OpenCall[]> {
  return tx.db
    .selectFrom('toolCalls')
    .select(['messageId', 'callId', 'name', 'state'])
    .where('runId', '=', runId)
    .where('state', '<>', 'done')
    .execute();
}

function contentOf({ state }: OpenCall): string {
  return state === 'pending' ? neverStarted : unknownOutcome;
}

type CloseRunInput = {
  readonly runId: string;
  readonly endReason: string;
  readonly detail?: string | undefined;
  /** Outcome of the items it took and didn't answer; absent if there are none. */
  readonly outcome?: Outcome;
  readonly outcomeReason?: string | undefined;
  /** Source key of the item of a task that it worked on. */
  readonly taskItem: string | null;
  /** How many parts its last step stored, under the next ordinals and timeline positions. */
  readonly parts: number;
  /** Whether the holder may continue with due items; otherwise it yields to other lanes. */
  readonly mayKeepLane: boolean;
  readonly effects: Effects;
};

/** How a lane is left. There is no fourth case. */
export type LaneExit =
  | { readonly kind: 'idle' }
  | { readonly kind: 'continuing' }
  | { readonly kind: 'armed'; readonly delayMs: number };

/**
 * Ends the run and leaves the lane idle, continuing or armed. `waiting` lists the lane's waiting items, read under its
 * lock, so a message either arrived earlier and is seen here, or finds no run.
 */
export async function closeRun(
  tx: StepTx,
  lane: Lane,
  closing: CloseRunInput,
  waiting: readonly { readonly dueAt: number }[],
): Promise<LaneExit> {
  const {
    runId,
    taskItem,
    endReason,
    detail = null,
    outcome,
    outcomeReason = null,
    parts,
    effects,
  } = closing;
  await endTitleRun(tx, lane, { runId, endReason });
  await finishRun(tx, { runId, endReason, detail, parts });
  if (outcome !== undefined) await endTaken(tx, runId, { outcome, outcomeReason });
  const left = (await isStoppingChild(tx, lane)) ? [] : waiting;
  if (taskItem !== null) await endRunOfTask(tx, { runId, taskItem, endReason }, effects);
  // Its task may have put the coordinator's next item into this lane.
  const next = lookAhead(taskItem === null ? left : await readWaiting(tx, lane.key), tx.now);
  const isKept = next.kind === 'continuing' && closing.mayKeepLane;
  await endLaneRun(tx, { laneKey: lane.key, parts }, isKept);
  await endRunOfChild(tx, lane, { endReason, isIdle: next.kind === 'idle' }, effects);
  return next.kind === 'continuing' && !closing.mayKeepLane ? { kind: 'armed', delayMs: 0 } : next;
}

/**
 * Stops the sub-agents that a run has spawned, when the run itself doesn't end naturally. Call it while only lanes are
 * locked: before sessions, budgets and conversations.
 */
export async function stopChildrenOf(tx: StepTx, lane: Lane, runId: string, effects: Effects): Promise<void> {
  await stopTree(tx, { sessionId: lane.sessionId, runIds: [runId], reason: 'parent-ended' }, effects);
}

function lookAhead([head]: readonly { readonly dueAt: number }[], now: number): LaneExit {
  if (!head) return { kind: 'idle' };
  return head.dueAt <= now ? { kind: 'continuing' } : { kind: 'armed', delayMs: head.dueAt - now };
}
