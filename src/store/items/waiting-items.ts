import type { Selectable } from 'kysely';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { type InboxContent, json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import { oneOf } from '../base/row-access.ts';
import type { InboxTable } from '../base/tables.ts';
import { type Lane, takeSeq } from '../rows/lane.ts';
import { isAlike, type QueuedRow } from './choose-batch.ts';
import { recordChange } from './item-change.ts';

/** A waiting item, with the columns that choosing a batch needs. */
export type WaitingRow = QueuedRow &
  Readonly<Omit<Row, 'route' | 'content'>> & {
    readonly content: InboxContent;
    readonly isCorrection: boolean;
  };

/**
 * Reads all waiting items of a lane, in its order; the cap keeps the list short. The parts of a bundle are due
 * together, when the last of them has arrived and has its files.
 */
export async function readWaiting(tx: Tx, laneKey: string): Promise<readonly WaitingRow[]> {
  return dueTogether(await waitingRows.all(tx, { laneKey })).map(waitingRow);
}

type DueRow = Pick<Selectable<InboxTable>, 'bundle' | 'dueAt'>;

function dueTogether<Row extends DueRow>(rows: readonly Row[]): readonly Row[] {
  const dueAt = new Map<string, number>();
  for (const { bundle, dueAt: own } of rows)
    if (bundle !== null) dueAt.set(bundle, Math.max(own, dueAt.get(bundle) ?? 0));
  return rows.map((row) => ({ ...row, dueAt: dueAt.get(row.bundle ?? '') ?? row.dueAt }));
}

/** Says whether it corrects that message. A lane may serve several conversations with overlapping message ids. */
export function isCorrectionOf(
  { content: { note }, conversationKey }: Pick<WaitingRow, 'content' | 'conversationKey'>,
  message: Pick<Selectable<InboxTable>, 'id' | 'messageId' | 'conversationKey'>,
): boolean {
  const name = message.messageId ?? message.id;
  return note?.kind === 'correction' && note.of === name && conversationKey === message.conversationKey;
}

/**
 * Reads when the lane's head may be taken, by the database's clock; undefined when nothing waits. Later items may be
 * due before it. Contents aren't read, so damaged ones don't matter here.
 */
export const readHeadDue: StoreQuery<{ readonly laneKey: string }, number | undefined> = {
  query: 'readHeadDue',
  run: async (tx, { laneKey }) => dueTogether(await waitingDues.all(tx, { laneKey }))[0]?.dueAt,
};

/** Larger than the highest cap that the configuration accepts, since corrections and commands don't count. */
const maxRead = 2_000;

const columns = [
  'id',
  'kind',
  'seq',
  'senderId',
  'messageId',
  'conversationKey',
  'route',
  'authority',
  'dueAt',
  'bundle',
  'reach',
  'reservedRunId',
  'source',
  'sourceKey',
  'content',
] as const;

const waitingRows = prepared((db, of: QueryParams<{ laneKey: string }>) => waitingIn(db, of).select(columns));

const waitingDues = prepared((db, of: QueryParams<{ laneKey: string }>) =>
  waitingIn(db, of).select(['bundle', 'dueAt']),
);

function waitingIn(db: Tx['db'], of: QueryParams<{ laneKey: string }>) {
  return db
    .selectFrom('inbox')
    .where('laneKey', '=', of.laneKey)
    .where(isOpenItem())
    .where('state', '=', 'waiting')
    .orderBy('rank')
    .orderBy('seq')
    .limit(maxRead);
}

type Row = Pick<Selectable<InboxTable>, (typeof columns)[number]>;

function waitingRow({ route, content: stored, ...row }: Row): WaitingRow {
  const content = json.content(stored);
  return { ...row, target: json.target(route), content, isCorrection: content.note?.kind === 'correction' };
}

const openItemColumns = [
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
export type OpenItem = Readonly<Pick<Selectable<InboxTable>, (typeof openItemColumns)[number]>>;

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
    .select(['laneKey', ...openItemColumns])
    .where('laneKey', ...oneOf(of.laneKeys, dialect))
    .where(isOpenItem())
    .orderBy('laneKey')
    .orderBy('rank')
    .orderBy('seq'),
);

/**
 * Gives waiting rows a rank before all others; among themselves they keep their order of arrival. The rank is the
 * lane's next sequence number, negated, so that the latest promotion comes first, even before items that a run has
 * returned. Returns how many rows were still waiting. The caller holds the lane's lock.
 */
export async function putAhead(tx: Tx, lane: Lane, ids: readonly string[]): Promise<number> {
  const rank = -(await takeSeq(tx, lane.key));
  const { numUpdatedRows } = await tx.db
    .updateTable('inbox')
    .set({ rank })
    .where('id', 'in', ids)
    .where(isOpenItem())
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/**
 * For `interrupt`: makes the newest message run next, together with waiting ones of the same route and authority as its
 * context. Others keep their order after them. If a `/new` waits, no message is moved: the command ends the active run,
 * and messages after it are read in their order of arrival.
 */
export async function putNewestAhead(
  tx: Tx,
  lane: Lane,
  { id, by }: { readonly id: string; readonly by: string },
): Promise<void> {
  const waiting = await readWaiting(tx, lane.key);
  const newest = waiting.find((row) => row.id === id);
  if (!newest || waiting.some((row) => row.kind === 'command')) return;
  const together = waiting.filter((row) => isAlike(newest, row));
  const isAhead = waiting.slice(0, together.length).every((row) => together.includes(row));
  if (isAhead) return;
  const ids = together.map((row) => row.id);
  await putAhead(tx, lane, ids);
  for (const inboxId of ids) await recordChange(tx, { laneKey: lane.key, inboxId, kind: 'interrupt', by });
}
