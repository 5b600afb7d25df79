import type { Tx } from '../../base/command.ts';
import { json } from '../../base/json.ts';
import { excerptOf } from '../../base/one-line.ts';
import { findRow, type RowOf, withoutNulls } from '../../base/row-access.ts';
import type { EventFacts, ItemFacts } from './read-items.ts';

export type PartRequest = {
  readonly keys?: readonly string[];
  readonly runIds?: readonly string[];
  readonly withExcerpts: boolean;
};

/** Reads the parts with these keys and those that these runs stored. */
export async function readParts(
  tx: Tx,
  { keys = [], runIds = [], withExcerpts }: PartRequest,
): Promise<readonly PartFacts[]> {
  const rows = [
    ...(keys.length === 0 ? [] : await outboxRows(tx).where('key', 'in', keys).execute()),
    ...(runIds.length === 0 ? [] : await outboxRows(tx).where('runId', 'in', runIds).execute()),
  ];
  return rows.map((row) => factsOf(row, withExcerpts));
}

type Row = RowOf<typeof outboxRows>;

function outboxRows(tx: Tx) {
  return tx.db
    .selectFrom('outbox')
    .select(['key', 'conversationKey', 'purpose', 'state', 'attempts', 'problem', 'runId', 'answer'])
    .select(['createdAt', 'dueAt', 'endedAt', 'receipts', 'content', 'waitAskedSince', 'waitAskedUntil']);
}

/** A part as shown by `why`. */
export type PartFacts = ReturnType<typeof factsOf>;

function factsOf(row: Row, withExcerpts: boolean) {
  const { receipts, content: _, waitAskedSince: since, waitAskedUntil: until, ...part } = withoutNulls(row);
  const excerpt = withExcerpts ? excerptOfPart(row) : undefined;
  return {
    ...part,
    /** The platform's message ids. */
    messageIds: json.strings(receipts ?? null),
    /** Since when its platform has been asking to delay it, and until when according to the last request. */
    ...(since !== undefined && until !== undefined && { askedToWait: { since, until } }),
    ...(excerpt !== undefined && { excerpt }),
  };
}

/** Returns an excerpt of the agent's own messages only, since a notice may show a usable code. */
function excerptOfPart({ purpose, content }: Row): string | undefined {
  if (purpose === 'notice') return undefined;
  const said = json.outbound(content);
  if (said.kind === 'action') return excerptOf(said.summary);
  return said.kind === 'text' || said.kind === 'edit' ? excerptOf(said.text.text) : `(${said.kind})`;
}

/** Suffixes of the keys of notices that respond to an event or item. */
const noticeNames = ['answer', 'cancelled', 'offer', 'overflow', 'pairing', 'refused', 'told', 'waiting'];

/** Returns the keys that notices responding to these events and items would have. */
export function partKeysOf(events: readonly EventFacts[], items: readonly ItemFacts[]): readonly string[] {
  const names = [
    ...events.map(({ account, eventKey }) => `${account}:${eventKey}`),
    ...items.map(({ id }) => id),
  ];
  return names.flatMap((name) => noticeNames.map((notice) => `${name}:${notice}`));
}

export type Origin = {
  readonly eventKeys: readonly { readonly account: string; readonly eventKey: string }[];
  readonly itemIds: readonly string[];
};

const unknownOrigin: Origin = { eventKeys: [], itemIds: [] };

/** Finds the subject of a notice without a run: the event or item with which its key begins. */
export async function originOfPart(tx: Tx, key: string): Promise<Origin> {
  const name = key.slice(0, key.lastIndexOf(':'));
  const item = await findRow(tx, 'inbox', name, ['id']);
  if (item) return { ...unknownOrigin, itemIds: [item.id] };
  const accounts = await tx.db.selectFrom('accounts').select('key').execute();
  const account = accounts.find((known) => name.startsWith(`${known.key}:`))?.key;
  if (account === undefined) return unknownOrigin;
  const eventKey = name.slice(account.length + 1);
  const event = await tx.db
    .selectFrom('ledger')
    .select(['account', 'eventKey', 'inboxId'])
    .where('account', '=', account)
    .where('eventKey', '=', eventKey)
    .executeTakeFirst();
  if (!event) return unknownOrigin;
  const itemIds = event.inboxId === null ? [] : [event.inboxId];
  return { eventKeys: [{ account, eventKey }], itemIds };
}

/** A question of Parley's that a person decides, as shown by `why`. */
export type ApprovalFacts = Awaited<ReturnType<typeof readApprovals>>[number];

/** Reads the questions with these ids. */
export async function readApprovals(tx: Tx, ids: readonly string[]) {
  if (ids.length === 0) return [];
  const rows = await tx.db
    .selectFrom('approvals')
    .select(['id', 'kind', 'subject', 'state', 'decidedBy', 'createdAt', 'expiresAt'])
    .where('id', 'in', ids)
    .orderBy('createdAt')
    .execute();
  const requests = await readRequests(tx);
  return rows.map(({ subject, ...row }) => {
    const request = requests.find(({ id }) => id === row.id);
    return {
      ...withoutNulls(row),
      /** The group's conversation, or the person as `<channel>:<peer>` while the question is open. */
      about: row.kind === 'group' ? subject : request?.ref,
      /** The bot account that the person wrote to, while the question is open. */
      account: request?.account,
      /** Its time is over, whether or not a sweep has closed it. */
      isOver: row.expiresAt <= tx.now,
    };
  });
}

/** A question about a tool call, as shown by `why`. */
export type CallApprovalFacts = Awaited<ReturnType<typeof readCallApprovals>>[number];

/** Reads the questions about calls of these runs. */
export async function readCallApprovals(
  tx: Tx,
  runIds: readonly string[],
  { withExcerpts }: { readonly withExcerpts: boolean },
) {
  if (runIds.length === 0) return [];
  const rows = await tx.db
    .selectFrom('callApprovals')
    .select(['id', 'runId', 'messageId', 'callId', 'tool', 'shown', 'askers', 'authority', 'state'])
    .select(['decidedBy', 'createdAt', 'expiresAt', 'endedAt'])
    .where('runId', 'in', runIds)
    .orderBy('createdAt')
    .execute();
  const ids = rows.map(({ id }) => id);
  const grants =
    ids.length === 0 ? [] : await tx.db.selectFrom('grants').select('id').where('id', 'in', ids).execute();
  return rows.map(({ shown, askers, ...row }) => ({
    ...withoutNulls(row),
    /** Accounts whose messages led to the call, as `<channel>:<peer>`. */
    askers: json.strings(askers),
    /** The same call may run without a question for some time. */
    isGranted: grants.some(({ id }) => id === row.id),
    /** Its time is over, whether or not a sweep has ended it. */
    isOver: row.expiresAt <= tx.now,
    ...(withExcerpts && { excerpt: excerptOf(shown) }),
  }));
}

/** Finds the run whose call the question with this id is about. */
export async function runOfCallApproval(tx: Tx, id: string): Promise<readonly string[]> {
  const row = await findRow(tx, 'callApprovals', id, ['runId']);
  return row ? [row.runId] : [];
}

/** Returns the keys of the parts that ask a question and report its end. */
export function partKeysOfApproval(id: string): readonly string[] {
  return [`approval:${id}`, `approval:${id}:changed`, `pairing:${id}:approved`];
}

/** Returns the id of the question that a part asks or whose end it reports; undefined for any other part. */
export function approvalOfPart(key: string): string | undefined {
  return /^(?:approval|pairing):([a-z0-9]{1,32})(?::(?:changed|approved))?$/.exec(key)?.[1];
}

/** Finds the event of the message with which the person requested access, while the question is open. */
export async function originOfApproval(tx: Tx, id: string): Promise<Origin['eventKeys']> {
  const request = (await readRequests(tx)).find((one) => one.id === id);
  if (request === undefined) return [];
  const { account, noticeKey } = request;
  const [start, end] = [`${account}:`, noticeSuffix];
  if (!noticeKey.startsWith(start) || !noticeKey.endsWith(end)) return [];
  return [{ account, eventKey: noticeKey.slice(start.length, -end.length) }];
}

/** Finds the open questions that resulted from these events. */
export async function approvalsOfEvents(tx: Tx, events: Origin['eventKeys']): Promise<readonly string[]> {
  if (events.length === 0) return [];
  const notices = new Set(events.map(({ account, eventKey }) => `${account}:${eventKey}${noticeSuffix}`));
  const requests = await readRequests(tx, [...new Set(events.map(({ account }) => account))]);
  return requests.filter(({ noticeKey }) => notices.has(noticeKey)).map(({ id }) => id);
}

/** Finds the open question whose person was shown this code, ignoring case and separators. */
export async function findByCode(tx: Tx, typed: string): Promise<readonly PairingRow[]> {
  const code = typed.replace(/[\s-]/g, '').toUpperCase();
  if (!/^[A-Z2-9]{8}$/.test(code)) return [];
  return (await readRequests(tx)).filter((request) => request.code === code);
}

const noticeSuffix = ':pairing';

type PairingRow = Awaited<ReturnType<typeof readRequests>>[number];

/** Reads all pending requests: each account has only a few, and they are deleted once expired. */
async function readRequests(tx: Tx, accounts?: readonly string[]) {
  const of = accounts ?? (await tx.db.selectFrom('accounts').select('key').execute()).map(({ key }) => key);
  if (of.length === 0) return [];
  return tx.db
    .selectFrom('pairings')
    .select(['id', 'account', 'peerId', 'ref', 'name', 'code', 'noticeKey', 'createdAt', 'expiresAt'])
    .where('account', 'in', of)
    .execute();
}
