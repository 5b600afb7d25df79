import { nameOfStored } from '../../alerts/alert.ts';
import type { Tx } from '../../base/command.ts';
import { isOpenItem, isOpenPart, isUnknownPart } from '../../base/index-predicates.ts';
import { findRow, readRow, withoutNulls } from '../../base/row-access.ts';
import { readLaneRun } from './read-items.ts';

/** A stored record, other than a message, that an id stands for. Contains no message text and no secret. */
export type RecordTrace =
  | { readonly kind: 'session'; readonly session: SessionFacts }
  | { readonly kind: 'lane'; readonly lane: LaneFacts }
  | { readonly kind: 'conversation'; readonly conversation: ConversationFacts }
  | { readonly kind: 'account'; readonly account: AccountFacts }
  | { readonly kind: 'process'; readonly process: ProcessFacts }
  | { readonly kind: 'person'; readonly person: PersonFacts }
  | { readonly kind: 'sign-in'; readonly signIn: SignInFacts }
  | { readonly kind: 'token'; readonly token: TokenFacts }
  | { readonly kind: 'alert'; readonly alert: AlertFacts };

/** Reference to a record; `id` is as requested. */
export type RecordSubject = { readonly kind: RecordTrace['kind']; readonly id: string };

/** Reads a record that `resolveSubject` has found in the same query. */
export async function readRecord(tx: Tx, { kind, id }: RecordSubject): Promise<RecordTrace> {
  switch (kind) {
    case 'session':
      return { kind, session: await readSession(tx, id) };
    case 'lane':
      return { kind, lane: await readLane(tx, id) };
    case 'conversation':
      return { kind, conversation: await readConversation(tx, id) };
    case 'account':
      return { kind, account: await readAccount(tx, id) };
    case 'process':
      return { kind, process: await readProcess(tx, id) };
    case 'person':
      return { kind, person: await readPerson(tx, id) };
    case 'sign-in':
      return { kind, signIn: await readSignIn(tx, id) };
    case 'token':
      return { kind, token: await readToken(tx, id) };
    case 'alert':
      return { kind, alert: await readAlert(tx, id) };
    default:
      return kind satisfies never;
  }
}

/** Maximum number of parts listed; more than anybody wants to read. */
const maxParts = 20;

/** A conversation on its platform, as shown by `why`. */
export type ConversationFacts = Awaited<ReturnType<typeof readConversation>>;

async function readConversation(tx: Tx, id: string) {
  const row = await findRow(tx, 'conversations', id, ['movedTo', 'admittedBy', 'unreachableAt']);
  const parts = () =>
    tx.db
      .selectFrom('outbox')
      .select('key')
      .where('conversationKey', '=', id)
      .where('purpose', '<>', 'preview')
      .limit(maxParts);
  const open = await parts().where(isOpenPart()).orderBy('place').execute();
  const unknown = await parts().where(isUnknownPart()).execute();
  return {
    key: id,
    movedTo: row?.movedTo ?? undefined,
    admittedBy: row?.admittedBy ?? undefined,
    unreachableAt: row?.unreachableAt ?? undefined,
    /** Keys of parts, at most `maxParts`. */
    openParts: open.map(({ key }) => key),
    unknownParts: unknown.map(({ key }) => key),
  };
}

/** A bot account as shown by `why`. */
export type AccountFacts = Awaited<ReturnType<typeof readAccount>>;

async function readAccount(tx: Tx, id: string) {
  const { key, holder, leaseUntil } = await readRow(tx, 'accounts', id, ['key', 'holder', 'leaseUntil']);
  // After the lease's end no process receives for the account.
  return { key, holder: holder !== null && leaseUntil > tx.now ? holder : undefined, leaseUntil };
}

/** A process that hasn't been found dead, as shown by `why`. */
export type ProcessFacts = Awaited<ReturnType<typeof readProcess>>;

async function readProcess(tx: Tx, id: string) {
  const boot = await readRow(tx, 'boots', id, ['id', 'role', 'startedAt']);
  const accounts = await tx.db.selectFrom('accounts').select(['key', 'holder', 'leaseUntil']).execute();
  const own = accounts.filter(({ holder, leaseUntil }) => holder === id && leaseUntil > tx.now);
  return { ...boot, accounts: own.map(({ key }) => key).sort() };
}

/** A person's stored access and links; the configuration may name people too. */
export type PersonFacts = Awaited<ReturnType<typeof readPerson>>;

/** Reads a person's rows. A person unknown to the store has none. */
async function readPerson(tx: Tx, ref: string) {
  const approvals = await tx.db
    .selectFrom('people')
    .select(['account', 'name', 'role', 'approvedAt', 'approvedBy'])
    .where('ref', '=', ref)
    .orderBy('approvedAt')
    .execute();
  const requests = await readRequestsOf(tx, ref);
  const [named] = [...approvals, ...requests];
  return {
    ref,
    name: named?.name ?? '',
    approvals: approvals.map(({ name: _, ...approval }) => approval),
    requests: requests.map(({ name: _, id, codeHash, ...request }) => ({
      ...request,
      approvalId: id,
      /** The request was declined, and no other one is accepted until it expires. */
      isDeclined: codeHash === null,
    })),
    /** Their direct conversation, if it has their id and they have written in it. */
    conversation: await findDirect(tx, ref),
    link: await readLink(tx, ref),
  };
}

async function readRequestsOf(tx: Tx, ref: string) {
  const { channel, peer } = readRef(ref);
  const accounts = await tx.db.selectFrom('accounts').select('key').execute();
  const own = accounts.map(({ key }) => key).filter((key) => key.startsWith(`${channel}/`));
  if (own.length === 0) return [];
  return tx.db
    .selectFrom('pairings')
    .select(['account', 'id', 'name', 'codeHash', 'createdAt', 'expiresAt'])
    .where('account', 'in', own)
    .where('peerId', '=', peer)
    .orderBy('createdAt')
    .execute();
}

/** Reads since when the account has been linked in chat, and with which others. */
async function readLink(tx: Tx, ref: string) {
  const own = tx.db.selectFrom('links').select(['identity', 'linkedAt']).where('peer', '=', ref);
  const link = await own.executeTakeFirst();
  if (!link) return undefined;
  const linked = tx.db.selectFrom('links').select('peer').where('identity', '=', link.identity);
  const peers = (await linked.orderBy('peer').execute()).map(({ peer }) => peer);
  return { linkedAt: link.linkedAt, others: peers.filter((peer) => peer !== ref) };
}

/** A signed-in browser as shown by `why`. */
export type SignInFacts = Awaited<ReturnType<typeof readSignIn>>;

function readSignIn(tx: Tx, id: string) {
  return readRow(tx, 'signIns', id, ['id', 'browser', 'createdAt', 'lastSeenAt', 'expiresAt']);
}

/** A program's token as shown by `why`. */
export type TokenFacts = Awaited<ReturnType<typeof readToken>>;

async function readToken(tx: Tx, id: string) {
  const what = ['id', 'name', 'scopes', 'createdBy'] as const;
  const times = ['createdAt', 'expiresAt', 'lastUsedAt', 'revokedAt'] as const;
  return withoutNulls(await readRow(tx, 'tokens', id, [...what, ...times]));
}

/** An alert for the owner, as shown by `why`. */
export type AlertFacts = Awaited<ReturnType<typeof readAlert>>;

async function readAlert(tx: Tx, id: string) {
  const row = await readRow(tx, 'ownerNotices', id, [
    'id',
    'kind',
    'subject',
    'count',
    'raisedAt',
    'lastAt',
    'toldAt',
    'partKey',
    'dismissedAt',
    'endedAt',
  ]);
  return { ...withoutNulls(row), ...nameOfStored(row) };
}

/** A session as shown by `why`. */
type SessionFacts = Awaited<ReturnType<typeof readSession>>;

/** Reads the session with this id, which must exist. */
async function readSession(tx: Tx, id: string) {
  const row = await tx.db
    .selectFrom('sessions')
    .select(['id', 'key as laneKey', 'agentId', 'parentSessionId', 'messageCount'])
    .select(['cost', 'createdAt', 'updatedAt', 'endedAt'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  const own = tx.db.selectFrom('lanes').select('sessionId').where('key', '=', row.laneKey);
  const isCurrent = (await own.executeTakeFirst())?.sessionId === id;
  return {
    ...withoutNulls(row),
    /** The session that replaced it. */
    nextSessionId: isCurrent ? undefined : await readNext(tx, row),
    /** The last run that wrote to it. */
    lastRunId: await readLastRun(tx, id),
    /** Its lane, while this is the lane's current session. */
    lane: isCurrent ? await readLane(tx, row.laneKey) : undefined,
  };
}

type SessionPlace = { readonly laneKey: string; readonly createdAt: number; readonly id: string };

async function readNext(tx: Tx, { laneKey, createdAt, id }: SessionPlace): Promise<string | undefined> {
  const row = await tx.db
    .selectFrom('sessions')
    .select('id')
    .where('key', '=', laneKey)
    .where('createdAt', '>=', createdAt)
    .where('id', '<>', id)
    .orderBy('createdAt')
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/** Finds the run by the session's last message; later notes have no run. */
async function readLastRun(tx: Tx, sessionId: string): Promise<string | undefined> {
  const rows = await tx.db
    .selectFrom('transcript')
    .select('runId')
    .where('sessionId', '=', sessionId)
    .orderBy('position', 'desc')
    .limit(maxNotes)
    .execute();
  return rows.find(({ runId }) => runId !== null)?.runId ?? undefined;
}

const maxNotes = 50;

/** Maximum number of waiting items listed; more than anybody wants to read. */
const maxWaiting = 20;

/** A lane as shown by `why`. */
type LaneFacts = Awaited<ReturnType<typeof readLane>>;

/** Reads the lane with this key, or the one that the key leads to. */
async function readLane(tx: Tx, key: string) {
  const leadsTo = (await findRow(tx, 'laneAliases', key, ['laneKey']))?.laneKey;
  const lane = await readRow(tx, 'lanes', leadsTo ?? key, ['agentId', 'mode', 'sessionId', 'lastActivityAt']);
  const open = () =>
    tx.db
      .selectFrom('inbox')
      .where('laneKey', '=', leadsTo ?? key)
      .where(isOpenItem());
  const waiting = await open().select('id').orderBy('rank').orderBy('seq').limit(maxWaiting).execute();
  const counted = open().select((eb) => eb.fn.countAll<number>().as('count'));
  return {
    key,
    /** The lane that its messages enter instead, because accounts were linked. */
    leadsTo,
    ...lane,
    run: await readLaneRun(tx, leadsTo ?? key),
    /** Ids of its open items, the next one first; at most `maxWaiting`. */
    waiting: waiting.map(({ id }) => id),
    waitingCount: Number((await counted.executeTakeFirst())?.count ?? 0),
  };
}

/** Splits `<channel>:<peer>`; both are empty for any other text. */
export function readRef(text: string): { readonly channel: string; readonly peer: string } {
  const [, channel = '', peer = ''] = /^([a-z][a-z0-9-]*):(\S+)$/.exec(text) ?? [];
  return { channel, peer };
}

/** Returns the keys that a conversation with this id would have at these bot accounts. */
export function conversationsNamed(accounts: readonly string[], id: string): readonly string[] {
  const spelt = [...new Set([id, encodeURIComponent(id)])];
  return accounts.flatMap((account) => spelt.map((segment) => `${account}/${segment}`));
}

/** Finds a person's (`<channel>:<peer>`) direct conversation, on networks where it has the person's id. */
export async function findDirect(tx: Tx, ref: string): Promise<string | undefined> {
  const { channel, peer } = readRef(ref);
  const accounts = (await tx.db.selectFrom('accounts').select('key').execute()).map(({ key }) => key);
  const own = accounts.filter((account) => account.startsWith(`${channel}/`));
  for (const key of conversationsNamed(own, peer)) if ((await readWriter(tx, key)) === peer) return key;
  return undefined;
}

/** Reads a sender who has written in the conversation; undefined if none of its messages has entered a lane. */
export async function readWriter(tx: Tx, conversationKey: string): Promise<string | undefined> {
  const items = tx.db.selectFrom('inbox').select('senderId').where('conversationKey', '=', conversationKey);
  return (await items.limit(1).executeTakeFirst())?.senderId;
}
