import type { Selectable } from 'kysely';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import type { StoreQuery, Tx } from '../base/command.ts';
import { hasCommand, isApprovedOwner, isOwnersLane } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import { accountKeyOf, routeOfKey } from '../base/keys.ts';
import { changeRow, readRow } from '../base/row-access.ts';
import type { LanesTable } from '../base/tables.ts';

/** Owners, and the accounts, channels and conversations through which one of them may be reached. */
export type OwnerSearch = {
  /** Owners named in the configuration, `<channel>:<peer>`; approved owners are added. */
  readonly owners: readonly string[];
  /** Keys of the bot accounts that may be used; absent: any. */
  readonly accounts?: readonly string[];
  /** Channels that may be used; absent: any. */
  readonly channels?: readonly string[];
  /** Key of a bot account that must not be used. */
  readonly notBy?: string | undefined;
  /** Key of a conversation that must not be used. */
  readonly notIn?: string;
};

const maxLanes = 200;
/** How many messages of a conversation shared by several accounts are searched for a usable account. */
const maxMessages = 1000;

/** Where an owner wrote last; `laneKey` is absent if only commands were sent there. */
export type OwnerPlace = { readonly route: ReplyRoute; readonly laneKey?: string };

/** Reads the direct conversation in which an owner last wrote a message or a command, among those that may be used. */
export const readOwnerRoute: StoreQuery<OwnerSearch, ReplyRoute | undefined> = {
  query: 'readOwnerRoute',
  run: async (tx, search) => (await readOwnerPlace.run(tx, search))?.route,
};

/** Reads the same conversation, with its lane. */
export const readOwnerPlace: StoreQuery<OwnerSearch, OwnerPlace | undefined> = {
  query: 'readOwnerPlace',
  run: async (tx, search) => {
    const known = new Set([...search.owners, ...(await approvedOwners(tx))]);
    let newest: (Written & { readonly laneKey: string }) | undefined;
    for (const { key, ownerAt } of await lanesOfOwners(tx)) {
      // None of the remaining lanes can have a newer message.
      if (newest && newest.createdAt >= Number(ownerAt) + stalenessMs) break;
      const found = (await writtenIn(tx, key)).find(
        (row) =>
          known.has(`${channelOf(row.account)}:${row.senderId}`) && mayUse(row.conversationKey, search),
      );
      if (found && (!newest || found.createdAt > newest.createdAt)) newest = { ...found, laneKey: key };
    }
    const commanded = await commandedSince(tx, newest?.createdAt ?? 0);
    const command = commanded.find(
      ({ key, commandedBy }) => known.has(`${channelOf(key)}:${commandedBy}`) && mayUse(key, search),
    );
    const laneKey = command && command.key !== newest?.conversationKey ? undefined : newest?.laneKey;
    const route = command ? routeOfKey(command.key) : newest && (await routeOf(tx, newest.id));
    return route && { route, ...(laneKey !== undefined && { laneKey }) };
  },
};

/** Reads where commands were sent, newest first; commands leave no message behind. */
function commandedSince(tx: Tx, since: number) {
  return tx.db
    .selectFrom('conversations')
    .select(['key', 'commandedBy'])
    .where(hasCommand())
    .where('commandedAt', '>', since)
    .orderBy('commandedAt', 'desc')
    .limit(maxLanes)
    .execute();
}

/** Records that somebody has sent a command in a direct conversation, whose row exists. */
export function noteCommand(tx: Tx, of: { readonly key: string; readonly by: string }): Promise<void> {
  return changeRow(tx, 'conversations', of.key, { commandedBy: of.by, commandedAt: tx.now });
}

async function approvedOwners(tx: Tx): Promise<readonly string[]> {
  const rows = await tx.db.selectFrom('people').select('ref').where(isApprovedOwner()).execute();
  return rows.map(({ ref }) => ref);
}

/** How far `ownerAt` may be from an owner's latest message, ms: it is indexed, so not every message writes it. */
const stalenessMs = 600_000;

/**
 * Records that somebody has written in a direct conversation. Only one person writes there, so the newest message shows
 * whether it is an owner's. The caller holds the lane's lock.
 */
export async function noteOwner(tx: Tx, lane: Lane, authority: string): Promise<void> {
  const { key, ownerAt } = lane;
  if (lane.chatKind !== 'dm' || lane.class !== 'main') return;
  if (authority !== 'owner')
    return ownerAt === null ? undefined : changeRow(tx, 'lanes', key, { ownerAt: null });
  // `abs`, because the clock may have been set back since.
  const isStale = ownerAt === null || Math.abs(tx.now - ownerAt) > stalenessMs;
  if (isStale) await changeRow(tx, 'lanes', key, { ownerAt: tx.now });
}

type Lane = Pick<Selectable<LanesTable>, 'key' | 'chatKind' | 'class' | 'ownerAt'>;

/** Reads direct conversations of owners, the latest written in first. */
function lanesOfOwners(tx: Tx) {
  return tx.db
    .selectFrom('lanes')
    .select(['key', 'ownerAt'])
    .where(isOwnersLane())
    .orderBy('ownerAt', 'desc')
    .limit(maxLanes)
    .execute();
}

type Written = Awaited<ReturnType<typeof writtenIn>>[number];

/** Reads the lane's messages, newest first. */
function writtenIn(tx: Tx, laneKey: string) {
  return tx.db
    .selectFrom('inbox')
    .select(['id', 'senderId', 'account', 'conversationKey', 'createdAt'])
    .where('laneKey', '=', laneKey)
    .where('source', '=', 'platform')
    .orderBy('seq', 'desc')
    .limit(maxMessages)
    .execute();
}

function mayUse(conversationKey: string, { accounts, channels, notBy, notIn }: OwnerSearch): boolean {
  const account = accountKeyOf(routeOfKey(conversationKey));
  if (account === notBy || conversationKey === notIn) return false;
  return accounts?.includes(account) !== false && channels?.includes(channelOf(account)) !== false;
}

/** Reads the channel from the key of an account or a conversation. */
export function channelOf(key: string): string {
  return decodeURIComponent(key.split('/')[0] ?? '');
}

async function routeOf(tx: Tx, id: string): Promise<ReplyRoute> {
  const row = await readRow(tx, 'inbox', id, ['route']);
  return withoutQuote(json.route(row.route));
}
