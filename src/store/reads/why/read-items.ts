import type { Selectable } from 'kysely';
import type { StoredAttachment } from '#contracts/attachment.ts';
import type { Tx } from '../../base/command.ts';
import { isOpenItem } from '../../base/index-predicates.ts';
import { type InboxContent, json } from '../../base/json.ts';
import { excerptOf } from '../../base/one-line.ts';
import { type RowOf, withoutNulls } from '../../base/row-access.ts';
import type { LedgerTable } from '../../base/tables.ts';
import { causeIn } from '../../intake/event.ts';
import { senderRef } from '../../items/item-change.ts';

export type ItemRequest = {
  readonly ids?: readonly string[];
  readonly runIds?: readonly string[];
  readonly withExcerpts: boolean;
};

/** Reads the messages with these ids and those that these runs took. */
export async function readItems(
  tx: Tx,
  { ids = [], runIds = [], withExcerpts }: ItemRequest,
): Promise<readonly ItemFacts[]> {
  const rows = [
    ...(ids.length === 0 ? [] : await inboxRows(tx).where('id', 'in', ids).execute()),
    ...(runIds.length === 0 ? [] : await inboxRows(tx).where('runId', 'in', runIds).execute()),
  ];
  const items: ItemFacts[] = [];
  for (const row of rows) items.push(await factsOf(tx, row, withExcerpts));
  return items;
}

type Row = RowOf<typeof inboxRows>;

function inboxRows(tx: Tx) {
  return tx.db
    .selectFrom('inbox')
    .select(['id', 'laneKey', 'seq', 'rank', 'kind', 'conversationKey', 'messageId', 'authority', 'state'])
    .select([
      'outcome',
      'outcomeReason',
      'dueAt',
      'notifiedAt',
      'isFetching',
      'runId',
      'transcriptId',
      'answer',
    ])
    .select(['account', 'senderId', 'content', 'createdAt']);
}

/** An item as shown by `why`. */
export type ItemFacts = Awaited<ReturnType<typeof factsOf>>;

async function factsOf(tx: Tx, row: Row, withExcerpts: boolean) {
  const { account: _, senderId: __, content: stored, createdAt, ...item } = withoutNulls(row);
  const content = json.content(stored);
  return {
    ...item,
    /** `<channel>:<peer>`. */
    sender: senderRef(row),
    /** Parts of the answer are still to be delivered, which may change the outcome. */
    isProvisional: await isProvisional(tx, row),
    arrivedAt: createdAt,
    /** When its waiting notice was stored; the notice is dropped if the item stops waiting before it is sent. */
    notifiedAt: item.notifiedAt || undefined,
    /** How many messages of the lane are ahead of it; only while it waits. */
    ahead: row.state === 'waiting' ? await countAhead(tx, row) : undefined,
    /** It is due by the database's clock. */
    isDue: row.dueAt <= tx.now,
    /** Its files are still being fetched. */
    isFetching: row.isFetching === 1,
    /** The lane's unfinished run, which either takes it or ends first; only while it waits. */
    laneRun: row.state === 'waiting' ? await readLaneRun(tx, row.laneKey) : undefined,
    ...(await readTaking(tx, row)),
    /** Its files, once they are fetched or given up. */
    files: (content.stored ?? []).map(fileFactsOf),
    /** Settings of the program that sent it for its run. */
    override: overrideOf(content),
    /** Who promoted, edited or cancelled it while it waited. */
    changes: await readChanges(tx, row.id),
    ...(withExcerpts && { excerpt: excerptOf(content.text) }),
  };
}

/** Leaves out the instructions themselves. */
function overrideOf({ override }: InboxContent) {
  if (override === undefined) return undefined;
  const { timeoutMs, prompt } = override;
  return {
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(prompt !== undefined && { promptChars: prompt.length }),
  };
}

/** A file of a message as shown by `why`: what became of it, its one end. */
export type FileFacts = ReturnType<typeof fileFactsOf>;

/** Leaves out the file's name, which its sender chose. */
function fileFactsOf(file: StoredAttachment) {
  const { kind } = file;
  if (kind === 'missing')
    return { kind, end: file.isRefused ? 'refused' : 'failed', reason: file.reason } as const;
  const { mimeType, sizeBytes, reading } = file;
  return {
    ...{ kind, mimeType, sizeBytes },
    ...(reading && { read: reading.kind }),
    ...(reading?.kind === 'unread' && { reason: reading.reason }),
  };
}

/** Says whether parts of the item's answer are still open; the query uses the index on a run's parts. */
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

/** A lane's unfinished run; `parkedAt` says since when it is parked. */
export type LaneRunFacts = NonNullable<Awaited<ReturnType<typeof readLaneRun>>>;

/** Reads the lane's unfinished run. */
export async function readLaneRun(tx: Tx, laneKey: string) {
  const row = await tx.db
    .selectFrom('lanes')
    .innerJoin('runs', 'runs.id', 'lanes.runId')
    .select(['runs.id', 'runs.parkedAt', 'runs.parkReason'])
    .where('lanes.key', '=', laneKey)
    .executeTakeFirst();
  return row && withoutNulls(row);
}

type TakenFacts = {
  /** Whether it was taken as its run began, or joined at a later boundary. */
  readonly joined: 'began' | 'steered' | undefined;
  readonly takenAt: number | undefined;
};

/** Reads when the item was taken. A run takes its first messages as it begins; the ones it takes later are steers. */
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

function readChanges(tx: Tx, inboxId: string) {
  return tx.db
    .selectFrom('itemChanges')
    .select(['kind', 'by', 'at'])
    .where('inboxId', '=', inboxId)
    .orderBy('at')
    .execute();
}

type EventKeys = readonly { readonly account: string; readonly eventKey: string }[];

/** Reads the named events, and all events of their messages and of the items' messages. */
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
    const events = ofMessage.where('conversationKey', '=', conversationKey).orderBy('at').limit(maxEvents);
    add(await events.execute());
  }
  return [...found.values()];
}

/** Maximum number of events per message; reactions to it are events too. */
const maxEvents = 50;

/** A ledger row: one platform event and intake's decision about it. */
export type EventFacts = ReturnType<typeof eventOf>;

function eventOf(row: Selectable<LedgerTable>) {
  const { inboxId: _, laneKey: __, raw, fingerprint: ___, ...event } = withoutNulls(row);
  return { ...event, detail: event.reason === 'unreadable' ? causeIn(raw) : raw };
}
