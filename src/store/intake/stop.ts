import type { Tx } from '../command.ts';
import { type Lane, lockLane } from '../lanes/lane-row.ts';
import { isOpenItem } from '../open-rows.ts';
import type { Accepting } from './accepting.ts';
import type { CommandEffect } from './proposal.ts';

type Stop = Extract<CommandEffect, { kind: 'stop' }>;
type Stopping = { readonly accepting: Accepting; readonly effect: Stop };
type Stopped = 'done' | 'nothing' | 'notPermitted';

/** Aborts the active run and cancels the sender's waiting messages (`all`: everybody's). */
export async function stop(tx: Tx, lane: Lane, stopping: Stopping): Promise<Stopped> {
  const { linked } = stopping.effect;
  const stopped = await stopLane(tx, lane, stopping);
  if (linked === undefined || linked.formerLane === lane.key) return stopped;
  const former = await lockLane(tx, linked.formerLane);
  const stoppedThere = former ? await stopLane(tx, former, stopping) : 'nothing';
  return stoppedThere === 'done' ? 'done' : stopped;
}

async function stopLane(tx: Tx, lane: Lane, { accepting, effect }: Stopping): Promise<Stopped> {
  if (effect.isAll && !effect.isPrivileged) return 'notPermitted';
  const isCancelled = (await cancelWaiting(tx, lane, { accepting, effect })) > 0;
  if (lane.runId === null) return isCancelled ? 'done' : 'nothing';
  const { senderId } = accepting.proposal;
  const mayStopRun = effect.isPrivileged || (await startedBy(tx, lane.runId, senderId));
  if (!mayStopRun) return isCancelled ? 'done' : 'notPermitted';
  await tx.db
    .updateTable('runs')
    .set({ cancelReason: 'stop' })
    .where('id', '=', lane.runId)
    .where('cancelReason', 'is', null)
    .execute();
  accepting.effects.cancels.push({ runId: lane.runId, reason: 'stop' });
  return 'done';
}

/** A sender is somebody on one network: in a lane that people of several share, ids alone may be alike. */
async function cancelWaiting(tx: Tx, lane: Lane, { accepting, effect }: Stopping): Promise<number> {
  const { input, proposal } = accepting;
  const people = new Set([
    nameOf({ account: input.account, senderId: proposal.senderId }),
    ...(effect.linked?.people ?? []),
  ]);
  const waiting = await tx.db
    .selectFrom('inbox')
    .select(['id', 'account', 'senderId'])
    .where('laneKey', '=', lane.key)
    .where(isOpenItem())
    .where('kind', '=', 'message')
    .execute();
  const ids = waiting.filter((row) => effect.isAll || people.has(nameOf(row))).map((row) => row.id);
  if (ids.length === 0) return 0;
  await tx.db
    .updateTable('inbox')
    .set({ state: 'ended', outcome: 'cancelled', outcomeReason: 'stop' })
    .where('id', 'in', ids)
    .execute();
  return ids.length;
}

/** `channel:peer`; an account's key begins with its channel. */
function nameOf({ account, senderId }: { readonly account: string; readonly senderId: string }): string {
  return `${account.split('/')[0]}:${senderId}`;
}

/** What the cap summarised belongs to the run too, but has not started it: only what the run took counts. */
async function startedBy(tx: Tx, runId: string, senderId: string): Promise<boolean> {
  const row = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('runId', '=', runId)
    .where('senderId', '=', senderId)
    .where('transcriptId', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
