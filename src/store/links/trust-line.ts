import type { Authority } from '#contracts/outcome.ts';
import { readRolesOf } from '../access/sender-roles.ts';
import type { Tx } from '../base/command.ts';

/** Rights from the configuration; stored roles are applied on top. */
export type Rights = {
  /** Accounts that the configuration names, `<channel>:<peer>`. */
  readonly named: Readonly<Record<string, Authority>>;
  /** Rights of an approved user. */
  readonly approved: Authority;
};

type JoinedPeers = {
  readonly peers: readonly string[];
  /** Accounts already linked in these identities count too. */
  readonly identities: readonly string[];
  readonly rights: Rights;
};

/** Says whether the accounts that would become one person currently have different rights. */
export async function crossesTrustLine(tx: Tx, { peers, identities, rights }: JoinedPeers): Promise<boolean> {
  const linked =
    identities.length === 0
      ? []
      : await tx.db.selectFrom('links').select('peer').where('identity', 'in', identities).execute();
  const refs = [...new Set([...peers, ...linked.map(({ peer }) => peer)])];
  const roles = await readRolesOf.run(tx, { refs });
  const authorityOf = (ref: string): Authority => {
    const role = roles.get(ref);
    if (role === 'owner') return 'owner';
    if (Object.hasOwn(rights.named, ref)) return rights.named[ref] ?? 'guest';
    return role === 'user' ? rights.approved : 'guest';
  };
  return new Set(refs.map(authorityOf)).size > 1;
}
