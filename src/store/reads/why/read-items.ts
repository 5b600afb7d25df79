import type { Selectable } from 'kysely';
import type { StoredAttachment } from '#contracts/attachment.ts';
import type { Tx } from '../../base/command.ts';
import { isOpenItem } from '../../base/index-predicates.ts';
import { json } from '../../base/json.ts';
import type { InboxTable, LedgerTable } from '../../base/tables.ts';
import { senderRef } from '../../items/item-change.ts';
import { excerptOf } from './excerpt.ts';
import type { EventFacts, FileFacts, ItemFacts } from './trace.ts';

export type ItemRequest = {
  readonly ids?: readonly string[];
  readonly runIds?: readonly string[];
  readonly withExcerpts: boolean;
};

/** The messages of these ids, or those that these runs took. */
export async function readItems(
  tx: Tx,
  { ids = [], runIds = [], withExcerpts }: ItemRequest,
): Promise<readonly ItemFacts[]> {
  const from = () => tx.db.selectFrom('inbox').selectAll();
  const rows = [
    ...(ids.length === 0 ? [] : await from().where('id', 'in', ids).execute()),
    ...(runIds.length === 0 ? [] : await from().where('runId', 'in', runIds).execute()),
  ];
  const items: ItemFacts[] = [];
  for (const row of rows) items.push(await factsOf(tx, row, withExcerpts));
  return items;
}

type Row = Selectable<InboxTable>;

async function factsOf(tx: Tx, row: Row, withExcerpts: boolean): Promise<ItemFacts> {
  const { id, laneKey, seq, rank, kind, conversationKey, authority, state, dueAt } = row;
  const content = json.content(row.content);
  return {
    id,
    laneKey,
    seq,
    rank,
    kind,
    conversationKey,
    messageId: row.messageId ?? undefined,
    sender: senderRef(row),
    authority,
    state,
    outcome: row.outcome ?? undefined,
    isProvisional: await isProvisional(tx, row),
    outcomeReason: row.outcomeReason ?? undefined,
    arrivedAt: row.createdAt,
    dueAt,
    // 0: nobody is told.
    notifiedAt: row.notifiedAt || undefined,
    ahead: state === 'waiting' ? await countAhead(tx, row) : undefined,
    isDue: dueAt <= tx.now,
    isFetching: row.isFetching === 1,
    laneRun: state === 'waiting' ? await readLaneRun(tx, laneKey) : undefined,
    runId: row.runId ?? undefined,
    transcriptId: row.transcriptId ?? undefined,
    ...(await readTaking(tx, row)),
    answer: row.answer ?? undefined,
    files: (content.stored ?? []).map(fileFactsOf),
    changes: await readChanges(tx, id),
    ...(withExcerpts && { excerpt: excerptOf(content.text) }),
  };
}

/** Without its name, which is its sender's word. */
function fileFactsOf(file: StoredAttachment): FileFacts {
  if (file.kind === 'missing') return { kind: 'missing', reason: file.reason };
  return { kind: 'stored', mimeType: file.mimeType, sizeBytes: file.sizeBytes };
}

/** As the index on the parts of a run finds it. */
async function isProvisional(tx: Tx, { runId, answer, outcome }: Row): Promise<boolean> {
  if (outcome !== 'answered' || runId === null || answer === null) return false;
  const open = await tx.db
    .selectFrom('outbox')
    .select('key')
    .where('runId', '=', runId)
    .where('answer', '=', answer)
    .where('purpose', '=', 'reply')
    .where('state', 'in', ['pending', 'sending'])
    .limit(1)
    .executeTakeFirst();
  return open !== undefined;
}

async function countAhead(tx: Tx, { laneKey, rank, seq }: Row): Promise<number> {
  const row = await tx.db
    .selectFrom('inbox')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('laneKey', '=', laneKey)
    .where(isOpenItem())
    .where('state', '=', 'waiting')
    .where((eb) => eb.or([eb('rank', '<', rank), eb.and([eb('rank', '=', rank), eb('seq', '<', seq)])]))
    .executeTakeFirst();
  return Number(row?.count ?? 0);
}

/** The lane's unfinished run. */
export async function readLaneRun(tx: Tx, laneKey: string): Promise<ItemFacts['laneRun']> {
  const row = await tx.db
    .selectFrom('lanes')
    .innerJoin('runs', 'runs.id', 'lanes.runId')
    .select(['runs.id', 'runs.parkedAt', 'runs.parkReason'])
    .where('lanes.key', '=', laneKey)
    .executeTakeFirst();
  return row && { id: row.id, parkedAt: row.parkedAt ?? undefined, parkReason: row.parkReason ?? undefined };
}

type TakenFacts = Pick<ItemFacts, 'joined' | 'takenAt'>;

/** A run takes its first messages in the transaction that begins it; what it takes later has steered it. */
async function readTaking(tx: Tx, { runId, transcriptId }: Row): Promise<TakenFacts> {
  if (runId === null || transcriptId === null) return { joined: undefined, takenAt: undefined };
  const row = await tx.db
    .selectFrom('transcript')
    .innerJoin('runs', 'runs.id', 'transcript.runId')
    .select(['transcript.createdAt', 'runs.startedAt'])
    .where('transcript.id', '=', transcriptId)
    .executeTakeFirst();
  if (!row) return { joined: undefined, takenAt: undefined };
  return { joined: row.createdAt > row.startedAt ? 'steered' : 'began', takenAt: row.createdAt };
}

async function readChanges(tx: Tx, inboxId: string): Promise<ItemFacts['changes']> {
  return tx.db
    .selectFrom('itemChanges')
    .select(['kind', 'by', 'at'])
    .where('inboxId', '=', inboxId)
    .orderBy('at')
    .execute();
}

type EventKeys = readonly { readonly account: string; readonly eventKey: string }[];

/** The events by name, and all events of the messages that the items were. */
export async function readEventsOf(
  tx: Tx,
  keys: EventKeys,
  items: readonly ItemFacts[],
): Promise<readonly EventFacts[]> {
  const found = new Map<string, EventFacts>();
  const add = (rows: readonly Selectable<LedgerTable>[]) => {
    for (const row of rows) found.set(`${row.account}:${row.eventKey}`, eventOf(row));
  };
  for (const { account, eventKey } of keys) {
    const named = tx.db.selectFrom('ledger').selectAll().where('account', '=', account);
    add(await named.where('eventKey', '=', eventKey).execute());
  }
  const asked = [...found.values()];
  for (const { conversationKey, messageId } of [...items, ...asked]) {
    if (messageId === undefined) continue;
    const ofMessage = tx.db.selectFrom('ledger').selectAll().where('messageId', '=', messageId);
    const events = ofMessage.where('conversationKey', '=', conversationKey).orderBy('at').limit(mostEvents);
    add(await events.execute());
  }
  return [...found.values()];
}

/** Events of one message; reactions to it are events too. */
const mostEvents = 50;

function eventOf({ account, eventKey, kind, outcome, ...row }: Selectable<LedgerTable>): EventFacts {
  const { conversationKey, at } = row;
  const reason = row.reason ?? undefined;
  return {
    account,
    eventKey,
    kind,
    outcome,
    reason,
    conversationKey,
    messageId: row.messageId ?? undefined,
    at,
  };
}
