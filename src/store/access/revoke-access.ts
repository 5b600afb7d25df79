import type { CommandPlace, StepTx, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { lockOrMakeLanes } from '../rows/lane-row.ts';
import { decideApproval } from './decide-approval.ts';
import type { Decider } from './decider.ts';
import { endWorkOf, findWorkOf, lockWorkBelow, type PeopleAtWork } from './end-work.ts';

export type RevokeResult = {
  /** How many approvals ended: one per bot account. */
  readonly people: number;
  /** How many requests were refused. */
  readonly requests: number;
  /** Runs and sub-agents to stop, and the conversations where a question about the person has now been decided. */
  readonly effects: Effects;
};

export type Revocation = {
  /** `channel:peer`. */
  readonly ref: string;
  readonly by: Decider;
};

/** The work that a revocation ends, and the accounts on which the person is approved or pending; all are locked. */
export type RevokedAccess = PeopleAtWork & { readonly accounts: readonly string[] };

/** Acquires all locks of a revocation except those of conversations, including the command's own `place`. */
export async function lockRevocation(tx: Tx, ref: string, place?: CommandPlace): Promise<RevokedAccess> {
  const accounts = await accountsOf(tx, ref);
  await lockAccounts(tx, [...new Set([...accounts, ...(place ? [place.account] : [])])]);
  const people = tx.db.selectFrom('people').select(['account', 'peerId']).where('ref', '=', ref);
  const found = (await people.execute()).filter(({ account }) => accounts.includes(account));
  const work = await findWorkOf(tx, found);
  await lockOrMakeLanes(tx, [...work.laneKeys.map((key) => ({ key })), ...(place ? [place.lane] : [])]);
  await lockWorkBelow(tx, found);
  return { ...work, accounts };
}

/**
 * Revokes the approval of `channel:peer` on every bot account, and refuses their requests. In the same transaction,
 * their waiting messages end as refused, and runs and sub-agents working for them are stopped. Because it holds the
 * accounts' rows, nothing they send afterwards is accepted. A concurrent approval on another account counts as made
 * after this. Repeating it changes nothing.
 */
export async function revokeAccess(
  tx: StepTx,
  { ref, by }: Revocation,
  revoked?: RevokedAccess,
): Promise<RevokeResult> {
  const { accounts, ...work } = revoked ?? (await lockRevocation(tx, ref));
  const effects = noEffects();
  if (accounts.length === 0) return { people: 0, requests: 0, effects };
  const people = tx.db.deleteFrom('people').where('ref', '=', ref).where('account', 'in', accounts);
  const { numDeletedRows } = await people.executeTakeFirstOrThrow();
  // Before the requests: lanes are locked before conversations.
  await endWorkOf(tx, work, effects);
  const requests = await tx.db
    .selectFrom('pairings')
    .select('id')
    .where('ref', '=', ref)
    .where('account', 'in', accounts)
    .where('codeHash', 'is not', null)
    .execute();
  for (const { id } of requests) await decideApproval(tx, { id, verdict: 'deny', by }, effects);
  return { people: Number(numDeletedRows), requests: requests.length, effects };
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
