import type { Tx } from '../../base/command.ts';
import { withoutNulls } from '../../base/row-access.ts';
import type { Origin } from './read-parts.ts';

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

export type PairingRow = Awaited<ReturnType<typeof readRequests>>[number];

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
