import type { ReplyRoute } from '#contracts/route.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { json } from '../base/json.ts';

export type OwnerSearch = {
  /** Owners by configuration, `<channel>:<peer>`; those who were approved as owners are added. */
  readonly owners: readonly string[];
  /** Channels that cannot be used now, and those of this machine. */
  readonly avoid: readonly string[];
  /** A conversation that must not be used, by its key. */
  readonly notIn?: string;
};

const mostLanes = 200;
/** How far back a conversation of several accounts is searched for one that can be used. */
const mostMessages = 1000;

/** The direct conversation in which an owner wrote last, on a channel that can be used. */
export const readOwnerRoute: StoreQuery<OwnerSearch, ReplyRoute | undefined> = {
  query: 'readOwnerRoute',
  run: async (tx, { owners, avoid, notIn }) => {
    const known = new Set([...owners, ...(await approvedOwners(tx))]);
    const lanes = await tx.db
      .selectFrom('lanes')
      .select(['key', 'lastActivityAt'])
      .where('chatKind', '=', 'dm')
      .orderBy('lastActivityAt', 'desc')
      .limit(mostLanes)
      .execute();
    let newest: Written | undefined;
    for (const { key, lastActivityAt } of lanes) {
      // The lanes come by their last activity: none of the rest can hold a newer message.
      if (newest && newest.createdAt >= lastActivityAt) break;
      const found = (await writtenByOwner(tx, key)).find(
        (row) =>
          known.has(`${channelOf(row)}:${row.senderId}`) &&
          !avoid.includes(channelOf(row)) &&
          row.conversationKey !== notIn,
      );
      if (found && (!newest || found.createdAt > newest.createdAt)) newest = found;
    }
    return newest && routeOf(tx, newest.id);
  },
};

async function approvedOwners(tx: Tx): Promise<readonly string[]> {
  const rows = await tx.db.selectFrom('people').select('ref').where('role', '=', 'owner').execute();
  return rows.map(({ ref }) => ref);
}

type Written = Awaited<ReturnType<typeof writtenByOwner>>[number];

/** The newest first. Nobody but its owner writes in a direct conversation, so its newest message tells whose it is. */
async function writtenByOwner(tx: Tx, laneKey: string) {
  const query = tx.db
    .selectFrom('inbox')
    .select(['id', 'senderId', 'account', 'authority', 'conversationKey', 'createdAt'])
    .where('laneKey', '=', laneKey)
    .where('source', '=', 'platform')
    .orderBy('seq', 'desc');
  const [last] = await query.limit(1).execute();
  return last?.authority === 'owner' ? query.limit(mostMessages).execute() : [];
}

function channelOf({ account }: { readonly account: string }): string {
  return decodeURIComponent(account.split('/')[0] ?? '');
}

async function routeOf(tx: Tx, id: string): Promise<ReplyRoute> {
  const row = await tx.db.selectFrom('inbox').select('route').where('id', '=', id).executeTakeFirstOrThrow();
  const { replyTo: _, ...route } = json.route(row.route);
  return route;
}
