import { timingSafeEqual } from 'node:crypto';
import type { CommandPlace, StepTx, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { decideApproval, lockDecision } from './decide-approval.ts';
import type { Decider } from './decider.ts';
import { lockCommand } from './lock-command.ts';
import { hasAttempt, takeAttempt } from './pairing-attempts.ts';
import type { Role } from './sender-roles.ts';

/** Name of a request: the hash of the code that the person was shown, or the person (`channel:peer`). */
export type RequestName = { readonly codeHash: string } | { readonly ref: string };

/** An approval of a pairing request. */
export type Approval = {
  readonly of: RequestName;
  readonly by: Decider;
  /**
   * In chat: the conversation in which the decider was first shown the person; without that nobody is approved. Absent
   * on the console, where the operator has read the list.
   */
  readonly offeredIn?: string;
};

export type ApprovalResult =
  | { readonly kind: 'approved'; readonly ref: string; readonly name: string; readonly role: Role }
  | ApprovalRefusal;

type ApprovalRefusal =
  | { readonly kind: 'unknown' }
  /** Too many codes within a minute: this one wasn't even checked. */
  | { readonly kind: 'limited' };

/**
 * Approves exactly the person who was shown the code, on the account that showed it, once: the row with the code is
 * deleted by the approval. Repeating it is an attempt with an unknown code.
 */
export async function approvePairing(
  tx: StepTx,
  approval: Approval,
  effects: Effects,
): Promise<ApprovalResult> {
  if ((await takeAttempt(tx)) === 'limited') return { kind: 'limited' };
  const { by, offeredIn } = approval;
  const request = await findRequest(tx, approval.of);
  const isOffered =
    offeredIn === undefined || (request?.offeredTo === by.ref && request.offeredIn === offeredIn);
  if (!request || !isOffered) return { kind: 'unknown' };
  const { id, account, peerId, ref, name } = request;
  const decided = await decideApproval(tx, { id, verdict: 'approve', by }, effects);
  if (decided.kind !== 'approved') return { kind: 'unknown' };
  const person = tx.db.selectFrom('people').select('role').where('account', '=', account);
  const { role } = await person.where('peerId', '=', peerId).executeTakeFirstOrThrow();
  return { kind: 'approved', ref, name, role };
}

/**
 * Acquires the locks of a command that approves a request, or only shows it if there is no `by`. Looks nothing up if no
 * attempt is left.
 */
export async function lockPairing(
  tx: StepTx,
  place: CommandPlace,
  { of, by }: Pick<Approval, 'of'> & Partial<Pick<Approval, 'by'>>,
): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  const request = (await hasAttempt(tx)) ? await findRequest(tx, of) : undefined;
  if (by) await lockDecision(tx, { id: request?.id ?? '', verdict: 'approve', by }, place);
  else await lockCommand(tx, place, { accounts: request ? [request.account] : [] });
}

/** A pairing request to show to an approver. */
export type ShownRequest = {
  readonly of: RequestName;
  /** Who may then confirm the approval, and where; only the last person who was shown the request can. */
  readonly offer?: { readonly to: string; readonly in: string };
};

/** Shows who made the request. It counts as an attempt, like an approval, but approves nobody. */
export async function showRequest(
  tx: Tx,
  { of, offer }: ShownRequest,
): Promise<{ readonly kind: 'asks'; readonly ref: string; readonly name: string } | ApprovalRefusal> {
  if ((await takeAttempt(tx)) === 'limited') return { kind: 'limited' };
  const found = await findRequest(tx, of);
  if (!found) return { kind: 'unknown' };
  const { account, id, ref, name } = found;
  if (offer) {
    await lockAccounts(tx, [account]);
    await tx.db
      .updateTable('pairings')
      .set({ offeredTo: offer.to, offeredIn: offer.in })
      .where('id', '=', id)
      .where('codeHash', 'is not', null)
      .execute();
  }
  return { kind: 'asks', ref, name };
}

async function findRequest(tx: Tx, of: RequestName) {
  const requests = await tx.db
    .selectFrom('pairings')
    .select(['account', 'peerId', 'id', 'ref', 'name', 'codeHash', 'offeredTo', 'offeredIn'])
    .where('expiresAt', '>', tx.now)
    .where('codeHash', 'is not', null)
    .orderBy('createdAt', 'desc')
    .execute();
  if ('ref' in of) return requests.find(({ ref }) => ref === of.ref);
  // Compares every request, so that timing doesn't reveal a near match.
  const [match] = requests.filter((request) => isSame(request.codeHash ?? '', of.codeHash));
  return match;
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
