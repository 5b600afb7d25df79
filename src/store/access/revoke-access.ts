import type { StepTx, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { dropRetained } from '../items/retained-steers.ts';
import { endItems } from '../rows/item-states.ts';
import { lockLane } from '../rows/lane-row.ts';
import { cancelRun } from '../waits/parked.ts';
import { decideApproval } from './decide-approval.ts';
import type { Decider } from './decider.ts';
import { lockAccount } from './sender-roles.ts';

export type Revoked = {
  /** How many approvals ended: one per bot account. */
  readonly people: number;
  /** How many requests were turned down. */
  readonly requests: number;
  /** Runs that are to stop: their person may not talk to the agent any more. */
  readonly cancels: Effects['cancels'];
  /** Their lanes, where those runs were parked. */
  readonly wakes: Effects['wakes'];
  /** Conversations in which an owner was asked about the person, and now reads that they were refused. */
  readonly deliveries: Effects['deliveries'];
};

export type Revocation = {
  /** `channel:peer`. */
  readonly ref: string;
  readonly by: Decider;
};

/**
 * Takes the approval of `channel:peer` back, on every bot account, and turns their requests down. What
 * they have waiting ends as refused and what runs for them is stopped, in the same transaction; as it
 * holds the accounts' rows, nothing they send afterwards is taken in. Repeating it changes nothing.
 */
export async function revokeAccess(tx: StepTx, { ref, by }: Revocation): Promise<Revoked> {
  for (const account of await accountsOf(tx, ref)) await lockAccount(tx, account);
  const people = await tx.db
    .deleteFrom('people')
    .where('ref', '=', ref)
    .returning(['account', 'peerId'])
    .execute();
  const requests = await tx.db
    .selectFrom('pairings')
    .select('id')
    .where('ref', '=', ref)
    .where('codeHash', 'is not', null)
    .execute();
  const { cancels, wakes, deliveries, ...others } = noEffects();
  for (const { id } of requests)
    await decideApproval(tx, { id, verdict: 'deny', by }, { cancels, wakes, deliveries, ...others });
  for (const person of people) {
    await endWaiting(tx, person);
    await stopRuns(tx, person, { cancels, wakes });
  }
  return { people: people.length, requests: requests.length, cancels, wakes, deliveries };
}

async function accountsOf(tx: Tx, ref: string): Promise<readonly string[]> {
  const rows = await tx.db
    .selectFrom('people')
    .select('account')
    .where('ref', '=', ref)
    .union(tx.db.selectFrom('pairings').select('account').where('ref', '=', ref))
    .orderBy('account')
    .execute();
  return rows.map((row) => row.account);
}

type Person = { readonly account: string; readonly peerId: string };

/** The lanes of what waits and of what runs for them are locked first, in key order. */
async function endWaiting(tx: Tx, { account, peerId }: Person): Promise<void> {
  const lanes = await tx.db
    .selectFrom('inbox')
    .select('laneKey')
    .distinct()
    .where(isOpenItem())
    .where('account', '=', account)
    .where('senderId', '=', peerId)
    .union(
      tx.db
        .selectFrom('lanes')
        .innerJoin('inbox', 'inbox.runId', 'lanes.runId')
        .select('lanes.key as laneKey')
        .where('lanes.runId', 'is not', null)
        .where('inbox.account', '=', account)
        .where('inbox.senderId', '=', peerId),
    )
    .orderBy('laneKey')
    .execute();
  for (const { laneKey } of lanes) await lockLane(tx, laneKey);
  const theirs = await tx.db
    .selectFrom('inbox')
    .select(['id', 'state'])
    .where(isOpenItem())
    .where('account', '=', account)
    .where('senderId', '=', peerId)
    .execute();
  const idsIn = (state: string) => theirs.filter((row) => row.state === state).map(({ id }) => id);
  await endItems(tx, idsIn('waiting'), { outcome: 'refused', outcomeReason: 'access-revoked' });
  const held = idsIn('held');
  if (held.length === 0) return;
  // A part of a group's album that waits for its siblings: should one call the agent, it is a guest's.
  await tx.db.updateTable('inbox').set({ authority: 'guest' }).where('id', 'in', held).execute();
}

async function stopRuns(
  tx: Tx,
  { account, peerId }: Person,
  effects: Pick<Effects, 'cancels' | 'wakes'>,
): Promise<void> {
  const running = await tx.db
    .selectFrom('lanes')
    .innerJoin('inbox', 'inbox.runId', 'lanes.runId')
    .select('lanes.key')
    .distinct()
    .where('lanes.runId', 'is not', null)
    .where('inbox.account', '=', account)
    .where('inbox.senderId', '=', peerId)
    .orderBy('lanes.key')
    .execute();
  for (const { key } of running) {
    const lane = await lockLane(tx, key);
    if (!lane || lane.runId === null) continue;
    // Steers in it end with it: the revoked person's messages are no longer read.
    await dropRetained(tx, lane.runId, (row) => row.account === account && row.senderId === peerId);
    await cancelRun(tx, lane, { reason: 'stop', effects });
  }
}
