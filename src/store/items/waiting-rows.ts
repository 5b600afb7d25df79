import type { Selectable } from 'kysely';
import type { StoreQuery, Tx } from '../base/command.ts';
import { isOpenItem } from '../base/index-predicates.ts';
import { type InboxContent, json } from '../base/json.ts';
import { prepared, type QueryParams } from '../base/prepared.ts';
import type { InboxTable } from '../base/tables.ts';
import type { QueuedRow } from './choose-batch.ts';

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
const mostRead = 2_000;

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
    .limit(mostRead);
}

type Row = Pick<Selectable<InboxTable>, (typeof columns)[number]>;

function waitingRow({ route, content: stored, ...row }: Row): WaitingRow {
  const content = json.content(stored);
  return { ...row, target: json.target(route), content, isCorrection: content.note?.kind === 'correction' };
}
