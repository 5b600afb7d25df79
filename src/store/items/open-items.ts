import type { Selectable } from 'kysely';
import type { Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { oneOf } from '../base/one-of.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import type { InboxTable } from '../base/tables.ts';

const columns = [
  'id',
  'seq',
  'kind',
  'source',
  'senderId',
  'conversationKey',
  'state',
  'bundle',
  'isFetching',
  'dueAt',
  'createdAt',
] as const;

/** Items not taken yet: held for their bundle, or waiting. */
export type OpenItem = Readonly<Pick<Selectable<InboxTable>, (typeof columns)[number]>>;

/** Reads open items in the lane's order, once for all decisions about an arrival; the cap keeps the list short. */
export function readOpenItems(tx: Tx, laneKey: string): Promise<readonly OpenItem[]> {
  return readOpenItemsOf(tx, [laneKey]);
}

/** Reads those of several lanes at once, each lane's in its order. */
export function readOpenItemsOf(
  tx: Tx,
  laneKeys: readonly string[],
): Promise<readonly (OpenItem & { readonly laneKey: string })[]> {
  return openItems.all(tx, { laneKeys: JSON.stringify(laneKeys) });
}

const openItems = prepared((db, of: QueryParams<{ laneKeys: string }>, dialect) =>
  db
    .selectFrom('inbox')
    .select(['laneKey', ...columns])
    .where('laneKey', ...oneOf(of.laneKeys, dialect))
    .where(isOpenItem())
    .orderBy('laneKey')
    .orderBy('rank')
    .orderBy('seq'),
);
