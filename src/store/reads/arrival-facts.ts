import { type Role, readRoles, readRolesOf } from '../access/sender-roles.ts';
import type { StoreQuery } from '../base/command.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { oneOf } from '../base/row-access.ts';
import { type ChatLinks, readLinks } from '../links/read-links.ts';

export type ArrivalFacts = {
  readonly conversations: readonly ConversationFacts[];
  readonly links: ChatLinks;
  /** Roles of the senders who were approved, by peer id. */
  readonly roles: ReadonlyMap<string, Role>;
  /** Roles of everybody linked with the senders, by `channel:peer`. */
  readonly linkedRoles: ReadonlyMap<string, Role>;
};

/** Reads the facts that intake needs about a batch. All of them are stored, so they apply across processes. */
export const readArrivalFacts: StoreQuery<
  {
    readonly account: string;
    readonly conversations: readonly string[];
    /** Peer ids of everybody who caused an event. */
    readonly senders: readonly string[];
    /** People who write directly, as `channel:peer`. */
    readonly peers: readonly string[];
    /** Identities that the configuration assigns to them. */
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
      readRoles.run(tx, { account, peerIds: senders }),
    ]);
    const linkedRoles = await readRolesOf.run(tx, { refs: links.accounts.map(({ peer }) => peer) });
    return { conversations, links, roles, linkedRoles };
  },
};

/** Facts that intake needs about a conversation. */
export type ConversationFacts = {
  readonly key: string;
  /** The id from which its session key is derived. */
  readonly canonicalId: string | undefined;
  readonly activation: 'mention' | 'always' | undefined;
  /** An owner has admitted this group, regardless of the configuration. */
  readonly isAdmitted: boolean;
  /** Agents chosen in chat, for the conversation (`thread` is empty) and for its threads. */
  readonly bindings?: readonly { readonly thread: string; readonly agentId: string }[];
};

/** Reads the facts that the mention gate needs about a batch's conversations; none for those without a row. */
const readConversationFacts: StoreQuery<{ readonly keys: readonly string[] }, readonly ConversationFacts[]> =
  {
    query: 'readConversationFacts',
    run: async (tx, { keys }) => {
      const rows = await conversationRows.all(tx, { keys: JSON.stringify(keys) });
      return [...Map.groupBy(rows, ({ key }) => key).values()].flatMap(([row, ...others]) =>
        row === undefined ? [] : [factsOf(row, [row, ...others])],
      );
    },
  };

type ConversationRow = {
  readonly key: string;
  readonly canonicalId: string | null;
  readonly activation: string | null;
  readonly admittedBy: string | null;
};

type BindingOfRow = { readonly thread: string | null; readonly agentId: string | null };

function factsOf(row: ConversationRow, bound: readonly BindingOfRow[]): ConversationFacts {
  return {
    key: row.key,
    canonicalId: row.canonicalId ?? undefined,
    activation: row.activation === 'always' || row.activation === 'mention' ? row.activation : undefined,
    isAdmitted: row.admittedBy !== null,
    bindings: bound.flatMap(({ thread, agentId }) =>
      thread === null || agentId === null ? [] : [{ thread, agentId }],
    ),
  };
}

/** One row per conversation and binding, since a second query would cost each batch a round trip. */
const conversationRows = prepared((db, of: QueryParams<{ keys: string }>, dialect) =>
  db
    .selectFrom('conversations')
    .leftJoin('bindings', 'bindings.conversationKey', 'conversations.key')
    .select(['key', 'canonicalId', 'activation', 'admittedBy', 'thread', 'agentId'])
    .where('key', ...oneOf(of.keys, dialect)),
);
