import { ParleyError } from '#contracts/errors.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { oneOf } from '../base/one-of.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

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

type JudgedSender = { readonly senderId: string; readonly standing?: SenderRole };

/**
 * Asserts that each sender's access is unchanged since intake read it. The caller must have locked the account's row,
 * which every approval and revocation locks too, so a batch committed after a revocation was also decided after it.
 * Throws `access_changed`, which means that intake must decide again.
 */
export async function assertRolesUnchanged(
  tx: Tx,
  { account, proposals }: { readonly account: string; readonly proposals: readonly JudgedSender[] },
): Promise<void> {
  const judged = proposals.filter(({ standing, senderId }) => standing !== undefined && senderId !== '');
  const peerIds = [...new Set(judged.map(({ senderId }) => senderId))];
  const roles = await readRoles.run(tx, { account, peerIds });
  if (judged.every(({ senderId, standing }) => (roles.get(senderId) ?? 'none') === standing)) return;
  throw new ParleyError('access_changed', `Somebody who writes to ${account} was approved or revoked.`, {
    retry: { kind: 'later' },
  });
}
