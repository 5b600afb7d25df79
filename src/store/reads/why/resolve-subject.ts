import type { Tx } from '../../base/command.ts';
import type { TraceSubject } from './trace.ts';

/** A message or sub-agent that an id may mean, named so that it can be asked for again. */
export type Candidate = {
  readonly name: string;
  readonly what: 'arrived' | 'sent' | 'spawned';
  readonly at: number;
};

export type Found =
  | { readonly kind: 'one'; readonly asked: TraceSubject }
  | { readonly kind: 'several'; readonly candidates: readonly Candidate[] }
  | { readonly kind: 'none' };

/**
 * Resolves an id. Our own ids come first, since they are unique; a platform's message id may occur in many
 * conversations.
 */
export async function resolveSubject(tx: Tx, id: string): Promise<Found> {
  const own = await findOwn(tx, id);
  if (own) return { kind: 'one', asked: own };
  const accounts = (await tx.db.selectFrom('accounts').select('key').execute()).map(({ key }) => key);
  const events = await findEvents(tx, accounts, id);
  const messages = events.length > 0 ? [] : await findMessages(tx, accounts, id);
  const found = [...events, ...messages, ...(await findChildren(tx, id))];
  const [first] = found;
  if (!first) return { kind: 'none' };
  if (found.length === 1) return { kind: 'one', asked: first.asked };
  return { kind: 'several', candidates: found.map(({ candidate }) => candidate) };
}

async function findOwn(tx: Tx, id: string): Promise<TraceSubject | undefined> {
  const { db } = tx;
  if (await db.selectFrom('inbox').select('id').where('id', '=', id).executeTakeFirst())
    return { kind: 'item', id };
  if (await db.selectFrom('outbox').select('key').where('key', '=', id).executeTakeFirst())
    return { kind: 'part', id };
  if (await db.selectFrom('runs').select('id').where('id', '=', id).executeTakeFirst())
    return { kind: 'run', id };
  if (await db.selectFrom('transcript').select('id').where('id', '=', id).executeTakeFirst())
    return { kind: 'transcript', id };
  if (await db.selectFrom('children').select('id').where('id', '=', id).executeTakeFirst())
    return { kind: 'child', id };
  // Reserved, and the item has not begun that run, or never will: it was merged into another one.
  const item = await db.selectFrom('inbox').select('id').where('reservedRunId', '=', id).executeTakeFirst();
  return item && { kind: 'item', id: item.id };
}

/** More sub-agents than anybody wants to choose from. */
const mostChildren = 20;

/** Sub-agents whose ids begin so, as people see them in lists. */
async function findChildren(tx: Tx, id: string): Promise<readonly NamedCandidate[]> {
  const beginning = id.toLowerCase();
  if (!/^[a-z2-7]{5,15}$/.test(beginning)) return [];
  const rows = await tx.db
    .selectFrom('children')
    .select(['id', 'createdAt'])
    // A range, since every index finds it: ids have 16 letters and digits, and digits come first.
    .where('id', '>=', beginning.padEnd(16, '2'))
    .where('id', '<=', beginning.padEnd(16, 'z'))
    .limit(mostChildren)
    .execute();
  return rows.map((row) => ({
    asked: { kind: 'child', id: row.id },
    candidate: { name: row.id, what: 'spawned', at: row.createdAt },
  }));
}

type NamedCandidate = { readonly asked: TraceSubject; readonly candidate: Candidate };

/** An event key is unique for a bot account only; it may be given with the account, as `<account>:<event key>`. */
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

/** More conversations than anybody wants to choose from. */
const mostPlaces = 50;

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
    .limit(mostPlaces)
    .execute();
  return rows.map((row) => ({ conversationKey: row.conversationKey, messageId, at: Number(row.at) }));
}

/** Receipts are ordered by conversation: each is looked up in, which costs less than reading all receipts. */
async function readSent(
  tx: Tx,
  conversationKey: string | undefined,
  messageId: string,
): Promise<readonly MessageLocation[]> {
  const rows = await tx.db
    .selectFrom('conversations')
    // In this order, as the cross join tells SQLite.
    .crossJoin('receipts')
    .innerJoin('outbox', 'outbox.key', 'receipts.partKey')
    .select(['receipts.conversationKey', 'outbox.createdAt'])
    .whereRef('receipts.conversationKey', '=', 'conversations.key')
    .where('receipts.messageId', '=', messageId)
    .$if(conversationKey !== undefined, (query) =>
      query.where('conversations.key', '=', conversationKey ?? ''),
    )
    .limit(mostPlaces)
    .execute();
  return rows.map((row) => ({ conversationKey: row.conversationKey, messageId, at: row.createdAt }));
}

/**
 * The conversations that `<channel>:<conversation>/<message>` may mean, one for each account of the
 * channel, or the one that `<channel>/<account>/<conversation>/<message>` does.
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
