import { type Role, readRolesOf, readStandings } from '../access/sender-roles.ts';
import type { StoreQuery } from '../base/command.ts';
import { type ChatLinks, readLinks } from '../links/read-links.ts';
import { type ConversationFacts, readConversationFacts } from './conversation-facts.ts';

export type ArrivalFacts = {
  readonly conversations: readonly ConversationFacts[];
  readonly links: ChatLinks;
  /** The senders whom an approval has let in, by peer id. */
  readonly roles: ReadonlyMap<string, Role>;
  /** The roles of everybody who is linked with them, by `channel:peer`. */
  readonly linkedRoles: ReadonlyMap<string, Role>;
};

/** Facts that intake needs of a batch, in one read: always stored ones, so they hold across processes. */
export const readArrivalFacts: StoreQuery<
  {
    readonly account: string;
    readonly conversations: readonly string[];
    /** Everybody whose event it is, by peer id. */
    readonly senders: readonly string[];
    /** Who writes directly. */
    readonly peers: readonly string[];
    /** Where the configuration has put them. */
    readonly identities: readonly string[];
  },
  ArrivalFacts
> = {
  query: 'readArrivalFacts',
  isShared: true,
  run: async (tx, { account, senders, conversations: keys, peers, identities }) => {
    const [conversations, links, roles] = await Promise.all([
      readConversationFacts.run(tx, { keys }),
      readLinks.run(tx, { peers, identities }),
      readStandings.run(tx, { account, peerIds: senders }),
    ]);
    const linkedRoles = await readRolesOf.run(tx, { refs: links.accounts.map(({ peer }) => peer) });
    return { conversations, links, roles, linkedRoles };
  },
};
