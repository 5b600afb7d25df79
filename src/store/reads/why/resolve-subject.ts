import { sql } from 'kysely';
import type { Tx } from '../../base/command.ts';
import { keyColumns } from '../../base/row-access.ts';
import { idsBeginning } from '../../children/child.ts';
import { findByCode } from './read-parts.ts';
import { conversationsNamed, findDirect, type RecordSubject, readRef, readWriter } from './read-record.ts';
import type { Candidate, NamedCandidate, TraceSubject } from './trace.ts';

export type Found =
  | { readonly kind: 'one'; readonly asked: TraceSubject }
  | { readonly kind: 'record'; readonly asked: RecordSubject }
  | { readonly kind: 'several'; readonly candidates: readonly Candidate[] }
  | { readonly kind: 'none' };

/**
 * Resolves an id, using keys and indexes only. Parley's own ids come first, since they are unique; a platform's message
 * id may occur in many conversations.
 */
export async function resolveSubject(tx: Tx, id: string): Promise<Found> {
  const own = await findOwn(tx, id);
  if (own) return { kind: 'one', asked: own };
  const record = await findRecord(tx, id);
  if (record) return { kind: 'record', asked: record };
  const accounts = (await tx.db.selectFrom('accounts').select('key').execute()).map(({ key }) => key);
  const events = await findEvents(tx, accounts, id);
  const messages = events.length > 0 ? [] : await findMessages(tx, accounts, id);
  const found = [
    ...events,
    ...messages,
    ...(await findBeginning(tx, id, { table: 'children', kind: 'child', what: 'spawned' })),
    ...(await findBeginning(tx, id, { table: 'tasks', kind: 'task', what: 'delegated' })),
    ...(await findCalls(tx, id)),
    ...(await findKeyed(tx, id)),
    ...(await findByCode(tx, id)).map(asQuestion),
  ];
  const [first] = found;
  if (!first) return findPerson(tx, accounts, id);
  if (found.length === 1) return { kind: 'one', asked: first.asked };
  return { kind: 'several', candidates: found.map(({ candidate }) => candidate) };
}

async function findOwn(tx: Tx, id: string): Promise<TraceSubject | undefined> {
  if (await isKey(tx, 'inbox', id)) return { kind: 'item', id };
  if (await isKey(tx, 'outbox', id)) return { kind: 'part', id };
  const runId = runIdOf(id);
  if (await isKey(tx, 'runs', runId)) return { kind: 'run', id: runId };
  if (await isKey(tx, 'transcript', id)) return { kind: 'transcript', id };
  if (await isKey(tx, 'children', id)) return { kind: 'child', id };
  if (await isKey(tx, 'tasks', id)) return { kind: 'task', id };
  const asked = id.toLowerCase();
  if ((await isKey(tx, 'approvals', asked)) || (await isKey(tx, 'callApprovals', asked)))
    return { kind: 'approval', id: asked };
  // A reserved run id whose run hasn't begun, or never will because the item was merged into another run.
  const item = await tx.db
    .selectFrom('inbox')
    .select('id')
    .where('reservedRunId', '=', runId)
    .executeTakeFirst();
  return item && { kind: 'item', id: item.id };
}

/** Returns the run id for a trace id, which is the same without hyphens; any other id is returned unchanged. */
function runIdOf(id: string): string {
  const [, ...parts] = /^([\da-f]{8})([\da-f]{4})([\da-f]{4})([\da-f]{4})([\da-f]{12})$/.exec(id) ?? [];
  return parts.length === 0 ? id : parts.join('-');
}

async function findRecord(tx: Tx, id: string): Promise<RecordSubject | undefined> {
  if (await isKey(tx, 'sessions', id)) return { kind: 'session', id };
  if ((await isKey(tx, 'lanes', id)) || (await isKey(tx, 'laneAliases', id))) return { kind: 'lane', id };
  if (await isConversation(tx, id)) return { kind: 'conversation', id };
  if (await isKey(tx, 'accounts', id)) return { kind: 'account', id };
  if (await isKey(tx, 'boots', id)) return { kind: 'process', id };
  if (await isKey(tx, 'signIns', id)) return { kind: 'sign-in', id };
  if (await isKey(tx, 'tokens', id)) return { kind: 'token', id };
  return (await isKey(tx, 'ownerNotices', id)) ? { kind: 'alert', id } : undefined;
}

/** Says whether the conversation is known. One to which nothing has been sent yet has no row of its own. */
async function isConversation(tx: Tx, key: string): Promise<boolean> {
  return (await isKey(tx, 'conversations', key)) || (await readWriter(tx, key)) !== undefined;
}

async function isKey(tx: Tx, table: keyof typeof keyColumns, id: string): Promise<boolean> {
  const column = sql.ref<string>(keyColumns[table]);
  const row = await tx.db
    .selectFrom(table)
    .select(sql.lit(1).as('found'))
    .where(column, '=', id)
    .executeTakeFirst();
  return row !== undefined;
}

/** Finds the message that a program sent under this name. */
async function findKeyed(tx: Tx, id: string): Promise<readonly NamedCandidate[]> {
  const rows = await tx.db
    .selectFrom('inbox')
    .select(['id', 'createdAt'])
    .where('sourceKey', '=', `api:${id}`)
    .execute();
  return rows.map((row) => ({
    asked: { kind: 'item', id: row.id },
    candidate: { name: row.id, what: 'arrived', at: row.createdAt },
  }));
}

function asQuestion({ id, createdAt }: { readonly id: string; readonly createdAt: number }): NamedCandidate {
  return { asked: { kind: 'approval', id }, candidate: { name: id, what: 'asked', at: createdAt } };
}

/**
 * Finds a person or conversation named `<channel>:<peer>` or `<channel>:<conversation>`. Tried last, since any name of
 * that form may be a person whom only the configuration names.
 */
async function findPerson(tx: Tx, accounts: readonly string[], id: string): Promise<Found> {
  const { channel, peer } = readRef(id);
  const own = accounts.filter((account) => account.startsWith(`${channel}/`));
  if (peer === '' || own.length === 0) return { kind: 'none' };
  const person = { kind: 'record', asked: { kind: 'person', id } } as const;
  if (await isKnownPerson(tx, { ref: id, peer, accounts: own })) return person;
  if ((await findDirect(tx, id)) !== undefined) return person;
  for (const key of conversationsNamed(own, peer))
    if (await isConversation(tx, key)) return { kind: 'record', asked: { kind: 'conversation', id: key } };
  return person;
}

type Peer = { readonly ref: string; readonly peer: string; readonly accounts: readonly string[] };

async function isKnownPerson(tx: Tx, { ref, peer, accounts }: Peer): Promise<boolean> {
  const { db } = tx;
  const person = await db.selectFrom('people').select('ref').where('ref', '=', ref).executeTakeFirst();
  if (person) return true;
  const link = await db.selectFrom('links').select('peer').where('peer', '=', ref).executeTakeFirst();
  if (link) return true;
  const requests = db.selectFrom('pairings').select('id').where('account', 'in', accounts);
  return (await requests.where('peerId', '=', peer).executeTakeFirst()) !== undefined;
}

/** Maximum number of sub-agents or tasks offered; more than anybody wants to choose from. */
const maxBeginning = 20;

/** Finds sub-agents or tasks whose ids begin with the text, since lists show only the beginning. */
async function findBeginning(
  tx: Tx,
  id: string,
  { table, kind, what }: { table: 'children' | 'tasks'; kind: 'child' | 'task'; what: Candidate['what'] },
): Promise<readonly NamedCandidate[]> {
  const ids = id.length < 5 || id.length > 15 ? undefined : idsBeginning(id);
  if (ids === undefined) return [];
  const rows = await tx.db
    .selectFrom(table)
    .select(['id', 'createdAt'])
    .where('id', '>=', ids.first)
    .where('id', '<=', ids.last)
    .limit(maxBeginning)
    .execute();
  return rows.map((row) => ({
    asked: { kind, id: row.id },
    candidate: { name: row.id, what, at: row.createdAt },
  }));
}

/** Finds events by key. A key is unique only within a bot account, so `<account>:<event key>` is accepted too. */
async function findEvents(
  tx: Tx,
  accounts: readonly string[],
  id: string,
): Promise<readonly NamedCandidate[]> {
  const named: NamedCandidate[] = [];
  for (const account of accounts) {
    const eventKey = id.startsWith(`${account}:`) ? id.slice(account.length + 1) : id;
    const row = await tx.db
      .selectFrom('ledger')
      .select('at')
      .where('account', '=', account)
      .where('eventKey', '=', eventKey)
      .executeTakeFirst();
    if (!row) continue;
    const name = `${account}:${eventKey}`;
    named.push({
      asked: { kind: 'event', account, eventKey },
      candidate: { name, what: 'arrived', at: row.at },
    });
  }
  return named;
}

async function findMessages(
  tx: Tx,
  accounts: readonly string[],
  id: string,
): Promise<readonly NamedCandidate[]> {
  const found = new Map<string, NamedCandidate>();
  const add = (what: Candidate['what'], { conversationKey, messageId, at }: MessageLocation) => {
    const name = `${conversationKey}/${messageId}`;
    if (!found.has(name))
      found.set(name, {
        asked: { kind: 'message', conversationKey, messageId },
        candidate: { name, what, at },
      });
  };
  for (const place of await readSent(tx, undefined, id)) add('sent', place);
  for (const place of await readArrived(tx, undefined, id)) add('arrived', place);
  for (const { conversationKey, messageId } of placesNamed(accounts, id)) {
    for (const place of await readSent(tx, conversationKey, messageId)) add('sent', place);
    for (const place of await readArrived(tx, conversationKey, messageId)) add('arrived', place);
  }
  return [...found.values()].sort((a, b) => b.candidate.at - a.candidate.at);
}

type MessageLocation = { readonly conversationKey: string; readonly messageId: string; readonly at: number };

/** Maximum number of conversations offered; more than anybody wants to choose from. */
const maxPlaces = 50;

async function readArrived(
  tx: Tx,
  conversationKey: string | undefined,
  messageId: string,
): Promise<readonly MessageLocation[]> {
  const rows = await tx.db
    .selectFrom('ledger')
    .select((eb) => ['conversationKey', eb.fn.min('at').as('at')])
    .where('messageId', '=', messageId)
    .$if(conversationKey !== undefined, (query) => query.where('conversationKey', '=', conversationKey ?? ''))
    .groupBy('conversationKey')
    .limit(maxPlaces)
    .execute();
  return rows.map((row) => ({ conversationKey: row.conversationKey, messageId, at: Number(row.at) }));
}

/** Reads sent messages. Receipts are indexed by conversation: looking in each one is cheaper than reading them all. */
async function readSent(
  tx: Tx,
  conversationKey: string | undefined,
  messageId: string,
): Promise<readonly MessageLocation[]> {
  const rows = await tx.db
    .selectFrom('conversations')
    // The cross join makes SQLite join in this order.
    .crossJoin('receipts')
    .innerJoin('outbox', 'outbox.key', 'receipts.partKey')
    .select(['receipts.conversationKey', 'outbox.createdAt'])
    .whereRef('receipts.conversationKey', '=', 'conversations.key')
    .where('receipts.messageId', '=', messageId)
    .$if(conversationKey !== undefined, (query) =>
      query.where('conversations.key', '=', conversationKey ?? ''),
    )
    .limit(maxPlaces)
    .execute();
  return rows.map((row) => ({ conversationKey: row.conversationKey, messageId, at: row.createdAt }));
}

/**
 * Returns the places that a message's name may mean: for `<channel>:<conversation>/<message>` one per account of the
 * channel, and for `<channel>/<account>/<conversation>/<message>` exactly that one.
 */
function placesNamed(accounts: readonly string[], name: string) {
  const slash = name.lastIndexOf('/');
  if (slash < 1) return [];
  const [place, messageId] = [name.slice(0, slash), name.slice(slash + 1)];
  const colon = place.indexOf(':');
  const [channel, conversation] = [place.slice(0, colon), place.slice(colon + 1)];
  const ofChannel = colon < 1 ? [] : accounts.filter((account) => account.startsWith(`${channel}/`));
  const spelt = [conversation, encodeURIComponent(conversation)];
  const keys = ofChannel.flatMap((account) => spelt.map((segment) => `${account}/${segment}`));
  return [...new Set([place, ...keys])].map((conversationKey) => ({ conversationKey, messageId }));
}

/** How many of the latest calls are found by their ids alone: models choose the ids, and an index would cost more. */
const latestCalls = 10_000;
/** Maximum number of calls offered; more than anybody wants to choose from. */
const maxCalls = 20;

/** Finds the tool calls named `<run>/<call>` or `<message>/<call>`, or by the call's id alone among the latest. */
async function findCalls(tx: Tx, id: string): Promise<readonly NamedCandidate[]> {
  const slash = id.indexOf('/');
  const rows =
    slash < 0 ? await findLatest(tx, id) : await findIn(tx, id.slice(0, slash), id.slice(slash + 1));
  return rows.map(({ messageId, callId, startedAt, endedAt, begunAt }) => ({
    asked: { kind: 'call', messageId, callId },
    candidate: { name: `${messageId}/${callId}`, what: 'called', at: startedAt ?? endedAt ?? begunAt },
  }));
}

function calls(tx: Tx) {
  return tx.db
    .selectFrom('toolCalls')
    .innerJoin('runs', 'runs.id', 'toolCalls.runId')
    .select(['toolCalls.messageId', 'toolCalls.callId', 'toolCalls.startedAt', 'toolCalls.endedAt'])
    .select('runs.startedAt as begunAt')
    .limit(maxCalls);
}

async function findIn(tx: Tx, owner: string, callId: string) {
  const ofMessage = calls(tx).where('toolCalls.messageId', '=', owner).where('toolCalls.callId', '=', callId);
  const ofRun = calls(tx).where('toolCalls.runId', '=', owner).where('toolCalls.callId', '=', callId);
  return [...(await ofMessage.execute()), ...(await ofRun.execute())];
}

/** Searches the latest calls. Message ids begin with their time, so the key has the calls in roughly the order made. */
async function findLatest(tx: Tx, callId: string) {
  const latest = tx.db
    .selectFrom('toolCalls')
    .select(['messageId', 'callId'])
    .orderBy('messageId', 'desc')
    .limit(latestCalls)
    .as('latest');
  const named = await tx.db
    .selectFrom(latest)
    .select('latest.messageId')
    .where('latest.callId', '=', callId)
    .limit(maxCalls)
    .execute();
  const messageIds = named.map(({ messageId }) => messageId);
  if (messageIds.length === 0) return [];
  return calls(tx)
    .where('toolCalls.messageId', 'in', messageIds)
    .where('toolCalls.callId', '=', callId)
    .execute();
}
