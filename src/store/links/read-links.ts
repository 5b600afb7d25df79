import type { StoreQuery } from '../command.ts';

/** What people have linked in chat, as far as it concerns the accounts asked about. */
export type ChatLinks = {
  readonly accounts: readonly { readonly peer: string; readonly identity: string }[];
  /** Session keys that lead to a lane of another key. */
  readonly lanes: readonly { readonly key: string; readonly laneKey: string }[];
};

export const noLinks: ChatLinks = { accounts: [], lanes: [] };

/**
 * The identities of these accounts with everybody in them, and those of `identities`, which the
 * configuration has put accounts into. One look at an index where nothing is linked.
 */
export const readLinks: StoreQuery<
  { readonly peers: readonly string[]; readonly identities: readonly string[] },
  ChatLinks
> = {
  query: 'readLinks',
  run: async (tx, { peers, identities }) => {
    const linked =
      peers.length === 0
        ? []
        : await tx.db.selectFrom('links').select('identity').where('peer', 'in', peers).execute();
    const wanted = [...new Set([...identities, ...linked.map((link) => link.identity)])];
    if (wanted.length === 0) return noLinks;
    const accounts = await tx.db
      .selectFrom('links')
      .select(['peer', 'identity'])
      .where('identity', 'in', wanted)
      .orderBy('linkedAt')
      .orderBy('peer')
      .execute();
    const lanes = await tx.db
      .selectFrom('laneAliases')
      .select(['key', 'laneKey'])
      .where('identity', 'in', wanted)
      .execute();
    return { accounts, lanes };
  },
};
