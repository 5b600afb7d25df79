import { lockCommand } from '../access/sender-roles.ts';
import type { CommandPlace, CommandScene, StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { findRow } from '../base/row-access.ts';
import { lockLineage, readChild, readLiveChildren } from '../children/child.ts';
import { lockBelow, stopTree } from '../children/stop-tree.ts';
import { cancel } from '../items/change-item.ts';
import { type Actor, senderRef } from '../items/item-change.ts';
import { reviveSummary } from '../items/overflow.ts';
import { dropRetained } from '../items/retained-steers.ts';
import { endItems, endSummaries } from '../rows/item.ts';
import { type Lane, lockLane } from '../rows/lane.ts';
import { readOpenTasks } from '../tasks/task.ts';
import { cancelRun } from '../waits/parked.ts';

/** The extent of a stop: how much of a lane's work it may end. */
export type StopInput = {
  /** Whether the sender may stop anybody's run. */
  readonly isPrivileged: boolean;
  readonly isAll: boolean;
  /** For a sender with linked accounts: all of those, and the lane that the sender wrote in before the link. */
  readonly linked?: { readonly people: readonly string[]; readonly formerLane: string };
};

type StopScene = Pick<CommandScene, 'account' | 'senderId' | 'effects'>;
type StopStepInput = { readonly scene: StopScene; readonly input: StopInput };

/**
 * Result of a stop. If the run is another sender's: `withdrawn` if messages of the sender's own ended, otherwise
 * `not-permitted`.
 */
export type StopResult = 'done' | 'withdrawn' | 'nothing' | 'not-permitted';

/** Locks the lanes in which a stop may end work, and those of their sub-agents. */
export async function lockForStop(tx: StepTx, place: CommandPlace, { linked }: StopInput): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  const lanes = await lockCommand(tx, place, { lanes: linked ? [{ key: linked.formerLane }] : [] });
  await lockBelow(
    tx,
    lanes.map(({ sessionId }) => sessionId),
  );
}

/**
 * Aborts the active run and cancels the sender's waiting messages (`all`: everybody's), including those that the cap
 * has summarized, those steered into the run, and announcements of the sender's sub-agents.
 */
export async function stop(tx: StepTx, lane: Lane, stopping: StopStepInput): Promise<StopResult> {
  const { linked } = stopping.input;
  const isElsewhere = linked !== undefined && linked.formerLane !== lane.key;
  const former = isElsewhere ? await lockLane(tx, linked.formerLane) : undefined;
  const here = await stopLane(tx, lane, stopping);
  if (!isElsewhere) return here;
  const stoppedThere = former ? await stopLane(tx, former, stopping) : 'nothing';
  if (here === 'done' || stoppedThere === 'nothing' || stoppedThere === 'not-permitted') return here;
  return stoppedThere;
}

async function stopLane(tx: StepTx, lane: Lane, { scene, input }: StopStepInput): Promise<StopResult> {
  if (input.isAll && !input.isPrivileged) return 'not-permitted';
  const mayStop = async (runId: string) => input.isPrivileged || (await startedBy(tx, runId, scene.senderId));
  const isTheirs = senderOf(scene, input);
  const announced = await readAnnouncements(tx, lane, mayStop);
  const ends = (row: Row) => isTheirs(row) || announced.has(row.id);
  const waiting = await cancelWaiting(tx, lane, ends);
  const isCancelled = waiting + (await endSummaries(tx, lane, { isTheirs, end: stopped })) > 0;
  if (isCancelled) await reviveSummary(tx, lane.key, scene.effects);
  const stoppedBelow = await stopChildren(tx, lane, { mayStop, effects: scene.effects });
  const hasStopped = isCancelled || stoppedBelow > 0;
  if (lane.runId === null) return hasStopped ? 'done' : 'nothing';
  if (!(await mayStop(lane.runId))) return hasStopped ? 'withdrawn' : 'not-permitted';
  await dropRetained(tx, lane.runId, ends);
  await cancelRun(tx, lane, { reason: 'stop', effects: scene.effects });
  return 'done';
}

type MayStop = (runId: string) => Promise<boolean>;

/**
 * Reads the ids of unused announcements by sub-agents of runs that the sender may stop: those waiting, and those
 * steered into the run and retained. Left alone, they would begin a run as soon as this one has stopped.
 */
async function readAnnouncements(tx: Tx, lane: Lane, mayStop: MayStop): Promise<ReadonlySet<string>> {
  const announcements = tx.db
    .selectFrom('inbox')
    .select(['id', 'sourceKey'])
    .where('source', '=', 'child')
    .where('sourceKey', 'like', `${announcementKeys}%`);
  const waiting = await announcements.where('laneKey', '=', lane.key).where(isOpenItem()).execute();
  const retained =
    lane.runId === null
      ? []
      : await announcements
          .where('runId', '=', lane.runId)
          .where('state', '=', 'taken')
          .where('isKept', '=', 1)
          .execute();
  const ids = new Set<string>();
  for (const { id, sourceKey } of [...waiting, ...retained]) {
    const child = await readChild(tx, sourceKey?.slice(announcementKeys.length) ?? '');
    if (child && (await mayStop(child.treeId))) ids.add(id);
  }
  return ids;
}

const announcementKeys = 'child:';

type StoppingChildren = {
  readonly mayStop: MayStop;
  readonly effects: Effects;
};

/**
 * Stops the sub-agents and tasks that this session's runs have begun, including finished runs, with all below them.
 * Returns how many.
 */
async function stopChildren(tx: StepTx, lane: Lane, { mayStop, effects }: StoppingChildren): Promise<number> {
  const { sessionId } = lane;
  const live = await readLiveChildren(tx, { sessionIds: [sessionId] });
  const tasks = await readOpenTasks(tx, { sessionIds: [sessionId] });
  const begunBy = [...live.map(({ parentRunId }) => parentRunId), ...tasks.map(({ runId }) => runId)];
  const runIds: string[] = [];
  for (const runId of new Set(begunBy)) if (await mayStop(runId)) runIds.push(runId);
  if (runIds.length === 0) return 0;
  const { queued, active } = await stopTree(tx, { sessionId, runIds, reason: 'stop' }, effects);
  return queued + active + tasks.filter(({ runId }) => runIds.includes(runId)).length;
}

const stopped = { outcome: 'cancelled', outcomeReason: 'stop' } as const;

type Sender = { readonly account: string; readonly senderId: string };
type IsTheirs = (row: Sender) => boolean;
type Row = Sender & { readonly id: string };

/** Returns a test for the sender's rows. Ids are unique only within a network, and a lane may serve several. */
function senderOf(sender: Sender, { isAll, linked }: StopInput): IsTheirs {
  const people = new Set([senderRef(sender), ...(linked?.people ?? [])]);
  return (row) => isAll || people.has(senderRef(row));
}

async function cancelWaiting(tx: Tx, lane: Lane, ends: (row: Row) => boolean): Promise<number> {
  const waiting = await tx.db
    .selectFrom('inbox')
    .select(['id', 'account', 'senderId'])
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .where('kind', '=', 'message')
    .execute();
  const ids = waiting.filter(ends).map(({ id }) => id);
  return endItems(tx, ids, stopped);
}

/**
 * Says whether the run has taken a message of the sender's, or reports the findings of a sub-agent of such a run.
 * Summarized items belong to a run too, but didn't start it, so only taken items count.
 */
async function startedBy(tx: Tx, runId: string, senderId: string): Promise<boolean> {
  const run = await findRow(tx, 'runs', runId, ['treeId']);
  const row = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('runId', 'in', [runId, run?.treeId ?? runId])
    .where('senderId', '=', senderId)
    .where('transcriptId', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Result of a cancel: whether there was anything to cancel, and the work that the commit makes due. */
type SessionCancelled = { readonly isCancelled: boolean; readonly effects: Effects };

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
