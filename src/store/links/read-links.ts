import { ParleyError } from '#contracts/errors.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { oneOf } from '../base/row-access.ts';

/** Links made in chat that involve the given accounts. */
export type ChatLinks = {
  readonly accounts: readonly { readonly peer: string; readonly identity: string }[];
  /** Session keys that lead to a lane with another key. */
  readonly lanes: readonly { readonly key: string; readonly laneKey: string }[];
};

/** The empty links: no account is linked in chat. */
export const noLinks: ChatLinks = { accounts: [], lanes: [] };

/**
 * Reads the identities of these accounts with all their members, and likewise `identities`, to which the configuration
 * assigns accounts. A single index lookup if nothing is linked.
 */
export const readLinks: StoreQuery<
  { readonly peers: readonly string[]; readonly identities: readonly string[] },
  ChatLinks
> = {
  query: 'readLinks',
  run: async (tx, { peers, identities }) => {
    const linked = peers.length === 0 ? [] : await identitiesOf.all(tx, { peers: JSON.stringify(peers) });
    const wanted = [...new Set([...identities, ...linked.map((link) => link.identity)])];
    if (wanted.length === 0) return noLinks;
    const asked = { identities: JSON.stringify(wanted) };
    return { accounts: await accountsIn.all(tx, asked), lanes: await lanesOf.all(tx, asked) };
  },
};

const identitiesOf = prepared((db, of: QueryParams<{ peers: string }>, dialect) =>
  db
    .selectFrom('links')
    .select('identity')
    .where('peer', ...oneOf(of.peers, dialect)),
);

const accountsIn = prepared((db, of: QueryParams<{ identities: string }>, dialect) =>
  db
    .selectFrom('links')
    .select(['peer', 'identity'])
    .where('identity', ...oneOf(of.identities, dialect))
    .orderBy('linkedAt')
    .orderBy('peer'),
);

const lanesOf = prepared((db, of: QueryParams<{ identities: string }>, dialect) =>
  db
    .selectFrom('laneAliases')
    .select(['key', 'laneKey'])
    .where('identity', ...oneOf(of.identities, dialect)),
);

/** The given accounts and their links. */
export type SeenLinks = {
  readonly peers: readonly string[];
  readonly identities: readonly string[];
  readonly accounts: ChatLinks['accounts'];
};

/**
 * Proves that the links by which intake chose lanes and rights are unchanged. Throws `access_changed`, which means that
 * intake must decide again. A message that coincides with a change of links is thus handled entirely before it or
 * entirely after it.
 */
export async function proveLinks(tx: Tx, seen: SeenLinks): Promise<void> {
  const { accounts } = await readLinks.run(tx, seen);
  if (JSON.stringify(accounts) === JSON.stringify(seen.accounts)) return;
  throw new ParleyError('access_changed', 'Accounts were linked or removed while a message came in.', {
    retry: { kind: 'later' },
  });
}
