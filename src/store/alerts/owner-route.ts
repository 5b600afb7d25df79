import type { Selectable } from 'kysely';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { accountKeyOf, routeOfKey } from '../base/conversation-key.ts';
import { hasCommand, isApprovedOwner, isOwnersLane } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { changeRow, readRow } from '../base/row-by-key.ts';
import type { LanesTable } from '../base/tables.ts';

/** Owners, and the accounts, channels and conversations by which one of them may be reached. */
export type OwnerSearch = {
  /** Owners by configuration, `<channel>:<peer>`; those who were approved as owners are added. */
  readonly owners: readonly string[];
  /** Keys of the bot accounts that may carry it; absent: any. */
  readonly accounts?: readonly string[];
  /** Channels that may carry it; absent: any. */
  readonly channels?: readonly string[];
  /** A bot account that must not be used, by its key. */
  readonly notBy?: string | undefined;
  /** A conversation that must not be used, by its key. */
  readonly notIn?: string;
};

const mostLanes = 200;
/** How far back a conversation of several accounts is searched for one that can be used. */
const mostMessages = 1000;

/** The direct conversation in which an owner wrote last, be it a command, by an account that can be used. */
export const readOwnerRoute: StoreQuery<OwnerSearch, ReplyRoute | undefined> = {
  query: 'readOwnerRoute',
  run: async (tx, search) => {
    const known = new Set([...search.owners, ...(await approvedOwners(tx))]);
    let newest: Written | undefined;
    for (const { key, ownerAt } of await lanesOfOwners(tx)) {
      // None of the rest can have a newer message.
      if (newest && newest.createdAt >= Number(ownerAt) + stalenessMs) break;
      const found = (await writtenIn(tx, key)).find(
        (row) =>
          known.has(`${channelOf(row.account)}:${row.senderId}`) && mayUse(row.conversationKey, search),
      );
      if (found && (!newest || found.createdAt > newest.createdAt)) newest = found;
    }
    const commanded = await commandedSince(tx, newest?.createdAt ?? 0);
    const command = commanded.find(
      ({ key, commandedBy }) => known.has(`${channelOf(key)}:${commandedBy}`) && mayUse(key, search),
    );
    if (command) return routeOfKey(command.key);
    return newest && routeOf(tx, newest.id);
  },
};

/** Commands leave no message behind: the newest conversation first. */
function commandedSince(tx: Tx, since: number) {
  return tx.db
    .selectFrom('conversations')
    .select(['key', 'commandedBy'])
    .where(hasCommand())
    .where('commandedAt', '>', since)
    .orderBy('commandedAt', 'desc')
    .limit(mostLanes)
    .execute();
}

/** Notes that somebody has sent a command in a direct conversation, which has a row. */
export function noteCommand(tx: Tx, of: { readonly key: string; readonly by: string }): Promise<void> {
  return changeRow(tx, 'conversations', of.key, { commandedBy: of.by, commandedAt: tx.now });
}

async function approvedOwners(tx: Tx): Promise<readonly string[]> {
  const rows = await tx.db.selectFrom('people').select('ref').where(isApprovedOwner()).execute();
  return rows.map(({ ref }) => ref);
}

/** How far `ownerAt` may lie from an owner's latest message in the lane, ms: it has an index, so it isn't written for each. */
const stalenessMs = 600_000;

/**
 * Notes that somebody has written in a direct conversation. Nobody but its owner writes in one, so its newest message tells
 * whose it is. The caller holds the lane's lock.
 */
export async function noteOwner(tx: Tx, lane: Lane, authority: string): Promise<void> {
  const { key, ownerAt } = lane;
  if (lane.chatKind !== 'dm' || lane.class !== 'main') return;
  if (authority !== 'owner')
    return ownerAt === null ? undefined : changeRow(tx, 'lanes', key, { ownerAt: null });
  // A clock may have been set back since.
  const isStale = ownerAt === null || Math.abs(tx.now - ownerAt) > stalenessMs;
  if (isStale) await changeRow(tx, 'lanes', key, { ownerAt: tx.now });
}

type Lane = Pick<Selectable<LanesTable>, 'key' | 'chatKind' | 'class' | 'ownerAt'>;

/** Direct conversations of owners, those first in which one wrote last. */
function lanesOfOwners(tx: Tx) {
  return tx.db
    .selectFrom('lanes')
    .select(['key', 'ownerAt'])
    .where(isOwnersLane())
    .orderBy('ownerAt', 'desc')
    .limit(mostLanes)
    .execute();
}

type Written = Awaited<ReturnType<typeof writtenIn>>[number];

/** The newest first. */
function writtenIn(tx: Tx, laneKey: string) {
  return tx.db
    .selectFrom('inbox')
    .select(['id', 'senderId', 'account', 'conversationKey', 'createdAt'])
    .where('laneKey', '=', laneKey)
    .where('source', '=', 'platform')
    .orderBy('seq', 'desc')
    .limit(mostMessages)
    .execute();
}

function mayUse(conversationKey: string, { accounts, channels, notBy, notIn }: OwnerSearch): boolean {
  const account = accountKeyOf(routeOfKey(conversationKey));
  if (account === notBy || conversationKey === notIn) return false;
  return accounts?.includes(account) !== false && channels?.includes(channelOf(account)) !== false;
}

/** Reads the channel from the key of an account or a conversation. */
function channelOf(key: string): string {
  return decodeURIComponent(key.split('/')[0] ?? '');
}

async function routeOf(tx: Tx, id: string): Promise<ReplyRoute> {
  const row = await readRow(tx, 'inbox', id, ['route']);
  return withoutQuote(json.route(row.route));
}
