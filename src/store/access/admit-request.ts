/** Applies the answer to a pairing request. */
import { fillText } from '../../texts/chat-texts.ts';
import type { Approval, ApprovalEnd } from '../approvals/approval-states.ts';
import type { StepTx, StoreQuery, Tx } from '../base/command.ts';
import { isApprovedOwner } from '../base/index-predicates.ts';
import { json } from '../base/json.ts';
import type { LaneSpec } from '../base/lane-spec.ts';
import { findRow } from '../base/row-by-key.ts';
import { insertNotice } from '../delivery/insert-notice.ts';
import { leaveFiles } from '../rows/left-files.ts';
import { answerKept } from './answer-kept.ts';
import { blankNotice } from './blank-notice.ts';
import type { OpenDecision } from './decider.ts';
import { personLabel } from './person-label.ts';
import type { Role } from './sender-roles.ts';

/** Returns the lane of the message kept for the person, while the question is still open. */
export async function laneOfKept(
  tx: Tx,
  { subject, state, expiresAt }: Approval,
): Promise<LaneSpec | undefined> {
  if (state !== 'open' || expiresAt <= tx.now) return undefined;
  return json.kept((await findRow(tx, 'pairings', subject, ['kept']))?.kept ?? null)?.lane;
}

/**
 * Approves the person on the account that showed them the code, notifies them, and puts their kept message into their
 * lane. The request's row is deleted along with its content.
 */
export async function admitRequest(tx: StepTx, { approval, by, effects }: OpenDecision): Promise<string> {
  const request = await tx.db
    .deleteFrom('pairings')
    .where('id', '=', approval.subject)
    .returningAll()
    .executeTakeFirst();
  if (!request) return tx.texts.approvalExpired;
  const { account, peerId, ref, name } = request;
  const role = await enterPerson(tx, { account, peerId, ref, name, by: by.ref, role: by.role });
  const route = json.route(request.route);
  const kept = json.kept(request.kept);
  const welcome = kept ? tx.texts.pairingApproved : tx.texts.pairingApprovedAsk;
  const text = role === 'owner' ? tx.texts.pairingApprovedOwner : welcome;
  const key = `pairing:${approval.id}:approved`;
  const authority = role === 'owner' ? 'owner' : 'member';
  if (kept) await answerKept(tx, { kept, account, senderId: peerId, authority, effects });
  // This locks the conversation, which must precede locking one of its parts below.
  effects.deliveries.push(await insertNotice(tx, { key, route, text }));
  await blankNotice(tx, request.noticeKey);
  const letIn = role === 'owner' ? tx.texts.pairingOwnerLetIn : tx.texts.pairingLetIn;
  return fillText(letIn, { who: personLabel({ ref, name }), by: by.label });
}

/** Ends a refused request. Its emptied row remains until it expires, so the person gets no new code immediately. */
export async function dropRequest(
  tx: StepTx,
  { subject }: Approval,
  { state, by }: Pick<ApprovalEnd, 'state' | 'by'>,
): Promise<string> {
  const forgotten = { codeHash: null, code: null, kept: null };
  const kept = json.kept((await findRow(tx, 'pairings', subject, ['kept']))?.kept ?? null);
  if (kept) await leaveFiles(tx, { route: kept.route, files: kept.content.attachments });
  const own = tx.db.updateTable('pairings').set(forgotten).where('id', '=', subject);
  const request = await own.returning(['noticeKey', 'ref', 'name']).executeTakeFirst();
  if (!request) return tx.texts.approvalExpired;
  await blankNotice(tx, request.noticeKey);
  const text = state === 'expired' ? tx.texts.pairingLapsed : tx.texts.pairingRefused;
  return fillText(text, { who: personLabel(request), by: by ?? '' });
}

type Person = {
  readonly account: string;
  readonly peerId: string;
  readonly ref: string;
  readonly name: string;
  readonly by: string;
  readonly role: Role | 'owner-if-none';
};

async function enterPerson(tx: Tx, { by, role: wanted, ...person }: Person): Promise<Role> {
  const role = wanted === 'owner-if-none' ? ((await hasApprovedOwner(tx)) ? 'user' : 'owner') : wanted;
  await tx.db
    .insertInto('people')
    .values({ ...person, role, approvedAt: tx.now, approvedBy: by })
    .onConflict((conflict) => conflict.columns(['account', 'peerId']).doUpdateSet({ role }))
    .execute();
  return role;
}

/** Says whether an approval has made somebody the owner, for what is shown before the next one. */
export const readHasApprovedOwner: StoreQuery<undefined, boolean> = {
  query: 'readHasApprovedOwner',
  run: (tx) => hasApprovedOwner(tx),
};

/** Says whether an approval has made somebody the owner. */
export async function hasApprovedOwner(tx: Tx): Promise<boolean> {
  const owners = tx.db.selectFrom('people').select('ref').where(isApprovedOwner()).limit(1);
  return (await owners.executeTakeFirst()) !== undefined;
}
