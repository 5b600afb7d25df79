import type { ItemSource } from '#contracts/inbox-item.ts';
import type { Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { oneOf } from '../base/one-of.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';

/** Items not taken yet: held for their bundle, or waiting. */
export type OpenItem = {
  readonly id: string;
  readonly seq: number;
  readonly kind: 'message' | 'command';
  readonly source: ItemSource;
  readonly state: string;
  readonly bundle: string | null;
  readonly isFetching: number;
  readonly dueAt: number;
  readonly createdAt: number;
};

/** In the lane's order. Read once for all that is decided about an arrival; the cap keeps it short. */
export function readOpenItems(tx: Tx, laneKey: string): Promise<readonly OpenItem[]> {
  return openItems.all(tx, { laneKey });
}

const columns = [
  'id',
  'seq',
  'kind',
  'source',
  'state',
  'bundle',
  'isFetching',
  'dueAt',
  'createdAt',
] as const;

const openItems = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  db
    .selectFrom('inbox')
    .select(columns)
    .where('laneKey', '=', of.laneKey)
    .where(isOpenItem())
    .orderBy('rank')
    .orderBy('seq'),
);

/** The same for several lanes, in one read; each lane's are in its order. */
export function readOpenItemsOf(
  tx: Tx,
  laneKeys: readonly string[],
): Promise<readonly (OpenItem & { readonly laneKey: string })[]> {
  return openItemsOf.all(tx, { laneKeys: JSON.stringify(laneKeys) });
}

const openItemsOf = prepared((db, of: QueryParams<{ laneKeys: string }>, dialect) =>
  db
    .selectFrom('inbox')
    .select(['laneKey', ...columns])
    .where('laneKey', ...oneOf(of.laneKeys, dialect))
    .where(isOpenItem())
    .orderBy('laneKey')
    .orderBy('rank')
    .orderBy('seq'),
);
