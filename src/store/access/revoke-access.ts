import type { StepTx, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { decideApproval } from './decide-approval.ts';
import type { Decider } from './decider.ts';
import { endWorkOf } from './end-work.ts';
import { lockAccount } from './sender-roles.ts';

export type RevokeResult = {
  /** How many approvals ended: one per bot account. */
  readonly people: number;
  /** How many requests were turned down. */
  readonly requests: number;
  /** Runs and sub-agents to stop, and the conversations in which a question about the person is decided now. */
  readonly effects: Effects;
};

export type Revocation = {
  /** `channel:peer`. */
  readonly ref: string;
  readonly by: Decider;
};

/**
 * Takes the approval of `channel:peer` back, on every bot account, and turns their requests down. What they have
 * waiting ends as refused, and what runs for them is stopped, sub-agents too, in the same transaction; as it holds
 * the accounts' rows, nothing they send afterwards is taken in. Repeating it changes nothing.
 */
export async function revokeAccess(tx: StepTx, { ref, by }: Revocation): Promise<RevokeResult> {
  for (const account of await accountsOf(tx, ref)) await lockAccount(tx, account);
  const people = await tx.db
    .deleteFrom('people')
    .where('ref', '=', ref)
    .returning(['account', 'peerId'])
    .execute();
  const effects = noEffects();
  // Before the requests: lanes are locked before conversations.
  await endWorkOf(tx, people, effects);
  const requests = await tx.db
    .selectFrom('pairings')
    .select('id')
    .where('ref', '=', ref)
    .where('codeHash', 'is not', null)
    .execute();
  for (const { id } of requests) await decideApproval(tx, { id, verdict: 'deny', by }, effects);
  return { people: people.length, requests: requests.length, effects };
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
