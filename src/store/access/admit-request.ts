/** Applies the answer to a pairing request. */
import { fillNotice } from '../../texts/notices.ts';
import type { Approval, ApprovalEnd } from '../approvals/approval-states.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';
import type { Effects } from '../base/effects.ts';
import { isApprovedOwner } from '../base/index-predicates.ts';
import { json, type KeptMessage } from '../base/json.ts';
import type { LaneSpec } from '../base/lane-spec.ts';
import { findRow } from '../base/row-by-key.ts';
import { insertNotice } from '../delivery/insert-notice.ts';
import { placeItem } from '../items/enqueue-item.ts';
import { acceptEntry } from '../rows/item-states.ts';
import { ensureLane } from '../rows/lane-row.ts';
import { leaveFiles } from '../rows/left-files.ts';
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
  const text = kept ? tx.texts.pairingApproved : tx.texts.pairingApprovedAsk;
  const key = `pairing:${approval.id}:approved`;
  if (kept) await answerKept(tx, { kept, account, peerId, role, effects });
  // This locks the conversation, which must precede locking one of its parts below.
  effects.deliveries.push(await insertNotice(tx, { key, route, text }));
  await blankNotice(tx, request.noticeKey);
  return fillNotice(tx.texts.pairingLetIn, { who: personLabel({ ref, name }), by: by.label });
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
  return fillNotice(text, { who: personLabel(request), by: by ?? '' });
}

type Kept = {
  readonly kept: KeptMessage;
  readonly account: string;
  readonly peerId: string;
  readonly role: Role;
  readonly effects: Effects;
};

/** How long to wait for a kept message's file, ms; the same as for any other message. */
const fetchWaitMs = 20_000;

/** Places the kept message in its lane, and records it in the ledger as accepted. */
async function answerKept(tx: Tx, { kept, account, peerId, role, effects }: Kept): Promise<void> {
  const { id, lane: spec, route, content, eventKey, messageId } = kept;
  const lane = await ensureLane(tx, spec);
  const isFetching = content.attachments.length > 0;
  const conversationKey = conversationKeyOf(route);
  await placeItem(
    tx,
    lane,
    {
      ...{ id, content, account, conversationKey, messageId, isFetching },
      kind: 'message',
      source: 'platform',
      reach: 'mode',
      target: route,
      authority: role === 'owner' ? 'owner' : 'member',
      senderId: peerId,
      bundle: null,
      isHeld: false,
      dueAt: tx.now + (isFetching ? fetchWaitMs : 0),
    },
    effects,
  );
  await acceptEntry(tx, { account, eventKey }, { inboxId: id, laneKey: lane.key });
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

/** Says whether an approval has made somebody the owner. */
export async function hasApprovedOwner(tx: Tx): Promise<boolean> {
  const owners = tx.db.selectFrom('people').select('ref').where(isApprovedOwner()).limit(1);
  return (await owners.executeTakeFirst()) !== undefined;
}
