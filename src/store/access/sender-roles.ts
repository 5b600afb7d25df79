import { ParleyError } from '#contracts/errors.ts';
import type { Authority } from '#contracts/outcome.ts';
import type { Approval } from '../approvals/approval.ts';
import type { CommandPlace, StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import type { LaneRef } from '../base/keys.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { oneOf } from '../base/row-access.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { type Lane, lockOrMakeLanes } from '../rows/lane.ts';

/** A person's role, granted by approval. */
export type Role = 'owner' | 'user';
/** A sender's stored access; the configuration is applied on top. */
export type SenderRole = Role | 'none';

type RoleRequest = { readonly account: string; readonly peerIds: readonly string[] };

/** Reads the stored roles of these senders of one bot account, by peer id, with a single index lookup. */
export const readRoles: StoreQuery<RoleRequest, ReadonlyMap<string, Role>> = {
  query: 'readRoles',
  run: async (tx, { account, peerIds }) => {
    if (peerIds.length === 0) return new Map();
    const rows = await rolesInAccount.all(tx, { account, peerIds: JSON.stringify(peerIds) });
    return new Map(rows.map(({ peerId, role }) => [peerId, role]));
  },
};

const rolesInAccount = prepared((db, of: QueryParams<{ account: string; peerIds: string }>, dialect) =>
  db
    .selectFrom('people')
    .select(['peerId', 'role'])
    .where('account', '=', of.account)
    .where('peerId', ...oneOf(of.peerIds, dialect)),
);

/** Reads the stored roles of these people (`channel:peer`); for a person with several, the lowest. */
export const readRolesOf: StoreQuery<{ readonly refs: readonly string[] }, ReadonlyMap<string, Role>> = {
  query: 'readRolesOf',
  run: async (tx, { refs }) => {
    if (refs.length === 0) return new Map();
    const rows = await tx.db.selectFrom('people').select(['ref', 'role']).where('ref', 'in', refs).execute();
    const roles = new Map<string, Role>();
    for (const { ref, role } of rows) roles.set(ref, roles.get(ref) === 'user' ? 'user' : role);
    return roles;
  },
};

type JudgedSender = { readonly senderId: string; readonly role?: SenderRole };

/**
 * Asserts that each sender's access is unchanged since intake read it. The caller must have locked the account's row,
 * which every approval and revocation locks too, so a batch committed after a revocation was also decided after it.
 * Throws `access_changed`, which means that intake must decide again.
 */
export async function assertRolesUnchanged(
  tx: Tx,
  { account, proposals }: { readonly account: string; readonly proposals: readonly JudgedSender[] },
): Promise<void> {
  const judged = proposals.filter(({ role, senderId }) => role !== undefined && senderId !== '');
  const peerIds = [...new Set(judged.map(({ senderId }) => senderId))];
  const roles = await readRoles.run(tx, { account, peerIds });
  if (judged.every(({ senderId, role }) => (roles.get(senderId) ?? 'none') === role)) return;
  throw new ParleyError('access_changed', `Somebody who writes to ${account} was approved or revoked.`, {
    retry: { kind: 'later' },
  });
}

/** The person who answers a question. */
export type Decider = {
  /** `channel:peer`, `console` or `page`. */
  readonly ref: string;
  /** Reference and name, as shown to others. */
  readonly label: string;
  readonly isOwner: boolean;
  /** Authority of their messages; absent if they have no access. */
  readonly authority?: Authority | undefined;
  /** All accounts of the person, `channel:peer`; absent: only `ref`. */
  readonly refs?: readonly string[];
  /** Role of a person they approve. */
  readonly role: Role | 'owner-if-none';
};

/** A question that is being decided. */
export type OpenDecision = {
  readonly approval: Approval;
  readonly by: Decider;
  readonly effects: Effects;
};

/**
 * Returns a person's label as shown to others: first the permanent reference, then the chosen name, which proves
 * nothing. `name` must already be cleaned; here it only loses characters that could end the quotation, so that no name
 * can pretend to be another reference.
 */
export function personLabel({ ref, name }: { readonly ref: string; readonly name: string }): string {
  const bare = name.replace(/[“”„‟«»"()]/g, '').trim();
  return bare === '' ? ref : `${ref} “${bare}”`;
}

type OtherRows = { readonly accounts?: readonly string[]; readonly lanes?: readonly LaneRef[] };

/**
 * Locks a command's account and lane together with the others that it needs, accounts before lanes. Returns the lanes
 * that exist. On SQLite there is only one writer, so nothing needs locking.
 */
export async function lockCommand(
  tx: Tx,
  { account, lane }: CommandPlace,
  { accounts = [], lanes = [] }: OtherRows = {},
): Promise<readonly Lane[]> {
  await lockAccounts(tx, [...new Set([account, ...accounts])]);
  return lockOrMakeLanes(tx, [lane, ...lanes]);
}
