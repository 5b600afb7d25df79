import type { Tx } from '../../base/command.ts';
import { withoutNulls } from '../../base/without-nulls.ts';
import type { Origin } from './read-parts.ts';

/** A question of Parley's that a person decides, as `why` shows it. */
export type ApprovalFacts = Awaited<ReturnType<typeof readApprovals>>[number];

/** The questions of these ids. */
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
      /** The group's conversation; of a person, while the question is open, `<channel>:<peer>`. */
      about: row.kind === 'group' ? subject : request?.ref,
      /** The bot account that the person wrote to, while the question is open. */
      account: request?.account,
      /** Its time is over, whether a sweep has closed it or not. */
      isOver: row.expiresAt <= tx.now,
    };
  });
}

/** The parts that ask a question, and tell its end. */
export function partKeysOfApproval(id: string): readonly string[] {
  return [`approval:${id}`, `approval:${id}:changed`, `pairing:${id}:approved`];
}

/** The question that a part asks, or whose end it tells; undefined for any other part. */
export function approvalOfPart(key: string): string | undefined {
  return /^(?:approval|pairing):([a-z0-9]{1,32})(?::(?:changed|approved))?$/.exec(key)?.[1];
}

/** The event of the message by which the person asked to be let in, while the question is open. */
export async function originOfApproval(tx: Tx, id: string): Promise<Origin['eventKeys']> {
  const request = (await readRequests(tx)).find((one) => one.id === id);
  if (request === undefined) return [];
  const { account, noticeKey } = request;
  const [start, end] = [`${account}:`, noticeSuffix];
  if (!noticeKey.startsWith(start) || !noticeKey.endsWith(end)) return [];
  return [{ account, eventKey: noticeKey.slice(start.length, -end.length) }];
}

/** The open questions that these events have led to. */
export async function approvalsOfEvents(tx: Tx, events: Origin['eventKeys']): Promise<readonly string[]> {
  if (events.length === 0) return [];
  const notices = new Set(events.map(({ account, eventKey }) => `${account}:${eventKey}${noticeSuffix}`));
  const requests = await readRequests(tx, [...new Set(events.map(({ account }) => account))]);
  return requests.filter(({ noticeKey }) => notices.has(noticeKey)).map(({ id }) => id);
}

/** The open question whose person was shown this code; whatever its case and separators. */
export async function findByCode(tx: Tx, typed: string): Promise<readonly PairingRow[]> {
  const code = typed.replace(/[\s-]/g, '').toUpperCase();
  if (!/^[A-Z2-9]{8}$/.test(code)) return [];
  return (await readRequests(tx)).filter((request) => request.code === code);
}

const noticeSuffix = ':pairing';

export type PairingRow = Awaited<ReturnType<typeof readRequests>>[number];

/** Each account has a few at most; they go with their time. */
async function readRequests(tx: Tx, accounts?: readonly string[]) {
  const of = accounts ?? (await tx.db.selectFrom('accounts').select('key').execute()).map(({ key }) => key);
  if (of.length === 0) return [];
  return tx.db
    .selectFrom('pairings')
    .select(['id', 'account', 'peerId', 'ref', 'name', 'code', 'noticeKey', 'createdAt', 'expiresAt'])
    .where('account', 'in', of)
    .execute();
}
