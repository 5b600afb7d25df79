import { lockCommand } from '../access/lock-command.ts';
import type { CommandPlace, CommandScene, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { findRow } from '../base/row-by-key.ts';
import { readChild, readLiveChildren } from '../children/child-rows.ts';
import { lockBelow, stopTree } from '../children/stop-tree.ts';
import { senderRef } from '../items/item-change.ts';
import { dropRetained } from '../items/retained-steers.ts';
import { reviveSummary } from '../items/revive-summary.ts';
import { endSummaries } from '../rows/end-summaries.ts';
import { endItems } from '../rows/item-states.ts';
import { type Lane, lockLane } from '../rows/lane-row.ts';
import { cancelRun } from '../waits/parked.ts';

/** How much of a lane's work a stop may end. */
export type StopInput = {
  /** Whether the sender may stop anybody's run. */
  readonly isPrivileged: boolean;
  readonly isAll: boolean;
  /** For a sender with linked accounts: all of them, and the lane they wrote in before the link. */
  readonly linked?: { readonly people: readonly string[]; readonly formerLane: string };
};

type StopScene = Pick<CommandScene, 'account' | 'senderId' | 'effects'>;
type StopStepInput = { readonly scene: StopScene; readonly input: StopInput };

/** Result of a stop. The run is another sender's: `withdrawn` if messages of the sender's own ended, else `not-permitted`. */
export type StopResult = 'done' | 'withdrawn' | 'nothing' | 'not-permitted';

/** Locks the lanes in which a stop may end work, and those of the sub-agents below. */
export async function lockForStop(tx: Tx, place: CommandPlace, { linked }: StopInput): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  const lanes = await lockCommand(tx, place, { lanes: linked ? [{ key: linked.formerLane }] : [] });
  await lockBelow(
    tx,
    lanes.map(({ sessionId }) => sessionId),
  );
}

/**
 * Aborts the active run and cancels the sender's waiting messages (`all`: everybody's), also those that the
 * cap has summarised and those that were steered into the run, and what the sender's sub-agents have announced.
 */
export async function stop(tx: Tx, lane: Lane, stopping: StopStepInput): Promise<StopResult> {
  const { linked } = stopping.input;
  const isElsewhere = linked !== undefined && linked.formerLane !== lane.key;
  const former = isElsewhere ? await lockLane(tx, linked.formerLane) : undefined;
  const here = await stopLane(tx, lane, stopping);
  if (!isElsewhere) return here;
  const stoppedThere = former ? await stopLane(tx, former, stopping) : 'nothing';
  if (here === 'done' || stoppedThere === 'nothing' || stoppedThere === 'not-permitted') return here;
  return stoppedThere;
}

async function stopLane(tx: Tx, lane: Lane, { scene, input }: StopStepInput): Promise<StopResult> {
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
 * Reads the ids of what sub-agents of runs that the sender may stop have announced here and nobody has used yet:
 * waiting, or steered into the run and retained. Left alone, it would begin a run as soon as this one has stopped.
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

/** Stops what the runs of this session have spawned, also those that are over, with all below. */
async function stopChildren(tx: Tx, lane: Lane, { mayStop, effects }: StoppingChildren): Promise<number> {
  const { sessionId } = lane;
  const live = await readLiveChildren(tx, { sessionIds: [sessionId] });
  const runIds: string[] = [];
  for (const runId of new Set(live.map(({ parentRunId }) => parentRunId)))
    if (await mayStop(runId)) runIds.push(runId);
  if (runIds.length === 0) return 0;
  const { queued, active } = await stopTree(tx, { sessionId, runIds, reason: 'stop' }, effects);
  return queued + active;
}

const stopped = { outcome: 'cancelled', outcomeReason: 'stop' } as const;

type Sender = { readonly account: string; readonly senderId: string };
type IsTheirs = (row: Sender) => boolean;
type Row = Sender & { readonly id: string };

/** A sender is somebody on one network: in a lane that people of several share, ids alone may be alike. */
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
 * Whether the run has taken a message of theirs, or reports what a sub-agent of such a run has found. Summarized items
 * belong to a run too, but didn't start it: only taken items count.
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
