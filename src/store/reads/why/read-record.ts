import type { Tx } from '../../base/command.ts';
import { isOpenPart, isUnknownPart } from '../../base/index-predicates.ts';
import { findDirect, readRef } from './people.ts';
import { readLane, readSession } from './read-session.ts';
import type {
  AccountFacts,
  AlertFacts,
  ConversationFacts,
  PersonFacts,
  ProcessFacts,
  RecordSubject,
  RecordTrace,
  SignInFacts,
} from './record.ts';

/** Reads a record that `resolveSubject` has found in the same look at the store. */
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
    case 'alert':
      return { kind, alert: await readAlert(tx, id) };
    default:
      return kind satisfies never;
  }
}

/** More parts than anybody wants to read. */
const mostParts = 20;

async function readConversation(tx: Tx, id: string): Promise<ConversationFacts> {
  const row = await tx.db
    .selectFrom('conversations')
    .select(['movedTo', 'admittedBy', 'unreachableAt'])
    .where('key', '=', id)
    .executeTakeFirst();
  const parts = () =>
    tx.db
      .selectFrom('outbox')
      .select('key')
      .where('conversationKey', '=', id)
      .where('purpose', '<>', 'preview')
      .limit(mostParts);
  const open = await parts().where(isOpenPart()).orderBy('place').execute();
  const unknown = await parts().where(isUnknownPart()).execute();
  return {
    key: id,
    movedTo: row?.movedTo ?? undefined,
    admittedBy: row?.admittedBy ?? undefined,
    unreachableAt: row?.unreachableAt ?? undefined,
    openParts: open.map(({ key }) => key),
    unknownParts: unknown.map(({ key }) => key),
  };
}

async function readAccount(tx: Tx, id: string): Promise<AccountFacts> {
  const { key, holder, leaseUntil } = await tx.db
    .selectFrom('accounts')
    .select(['key', 'holder', 'leaseUntil'])
    .where('key', '=', id)
    .executeTakeFirstOrThrow();
  return { key, holder: holder !== null && leaseUntil > tx.now ? holder : undefined, leaseUntil };
}

async function readProcess(tx: Tx, id: string): Promise<ProcessFacts> {
  const boot = await tx.db
    .selectFrom('boots')
    .select(['id', 'role', 'startedAt'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  const accounts = await tx.db.selectFrom('accounts').select(['key', 'holder', 'leaseUntil']).execute();
  const own = accounts.filter(({ holder, leaseUntil }) => holder === id && leaseUntil > tx.now);
  return { ...boot, accounts: own.map(({ key }) => key).sort() };
}

/** Somebody of whom the store has nothing has no row in any of these. */
async function readPerson(tx: Tx, ref: string): Promise<PersonFacts> {
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
      isDeclined: codeHash === null,
    })),
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

async function readLink(tx: Tx, ref: string): Promise<PersonFacts['link']> {
  const own = tx.db.selectFrom('links').select(['identity', 'linkedAt']).where('peer', '=', ref);
  const link = await own.executeTakeFirst();
  if (!link) return undefined;
  const linked = tx.db.selectFrom('links').select('peer').where('identity', '=', link.identity);
  const peers = (await linked.orderBy('peer').execute()).map(({ peer }) => peer);
  return { linkedAt: link.linkedAt, others: peers.filter((peer) => peer !== ref) };
}

function readSignIn(tx: Tx, id: string): Promise<SignInFacts> {
  return tx.db
    .selectFrom('signIns')
    .select(['id', 'browser', 'createdAt', 'lastSeenAt', 'expiresAt'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
}

async function readAlert(tx: Tx, id: string): Promise<AlertFacts> {
  const row = await tx.db
    .selectFrom('ownerNotices')
    .select(['id', 'kind', 'subject', 'count', 'raisedAt', 'lastAt'])
    .select(['toldAt', 'partKey', 'dismissedAt', 'endedAt'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return {
    ...row,
    toldAt: row.toldAt ?? undefined,
    partKey: row.partKey ?? undefined,
    dismissedAt: row.dismissedAt ?? undefined,
    endedAt: row.endedAt ?? undefined,
  };
}
