/** Groups that an owner has admitted, in addition to those that the configuration names. */

import { parseJson } from '#channel-kit/parse-json.ts';
import { plainText } from '#contracts/formatted-text.ts';
import type { Authority } from '#contracts/outcome.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { fillText } from '../../texts/chat-texts.ts';
import {
  type Approval,
  type ApprovalEnd,
  addDetails,
  askQuestion,
  openApproval,
  readOpenApproval,
} from '../approvals/approval.ts';
import type { StepTx, StoreQuery, Tx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { isApprovedOwner } from '../base/index-predicates.ts';
import { json, type KeptMessage } from '../base/json.ts';
import { conversationKeyOf, type LaneSpec } from '../base/keys.ts';
import { findRow } from '../base/row-access.ts';
import { ensureConversation, insertNotice, maxMoves } from '../delivery/part.ts';
import { placeItem } from '../items/enqueue-item.ts';
import { acceptEntry } from '../rows/item.ts';
import { ensureLane } from '../rows/lane.ts';
import { leaveFiles } from '../rows/left-files.ts';
import { type OpenDecision, personLabel, type Role } from './sender-roles.ts';

/** An unlisted group in which an owner addresses the bot; `kept`: the message that is answered once it is admitted. */
export type GroupRequest = {
  readonly id: string;
  readonly route: ReplyRoute;
  readonly kept?: KeptMention | undefined;
};

type KeptMention = KeptMessage & { readonly senderId: string };

/** How long the button is valid, ms. */
const validMs = 24 * 3_600_000;

/**
 * Asks in the group whether to answer there. Returns the conversation to deliver in; undefined if already asking. The
 * first message to the bot while the question is open is the one that is kept.
 */
export async function askInGroup(tx: StepTx, { id, route, kept }: GroupRequest): Promise<string | undefined> {
  const subject = conversationKeyOf(route);
  const text = tx.texts.groupAsk;
  const mention = kept === undefined ? {} : { kept: JSON.stringify(kept) };
  const details = {
    ...{ question: text, account: route.account, route: JSON.stringify(withoutQuote(route)) },
    ...mention,
  };
  if (!(await openApproval(tx, { id, kind: 'group', subject, details, validMs }))) {
    const open = await readOpenApproval(tx, { kind: 'group', subject });
    if (open && open.details.kept === undefined) await addDetails(tx, open, mention);
    return undefined;
  }
  const choices = [{ verdict: 'approve', label: tx.texts.groupAnswerHere }] as const;
  return askQuestion(tx, { id, route, text: plainText(text), choices });
}

/** Returns the lane of the message kept for the group, while the question is still open. */
export async function laneOfMention(
  tx: Tx,
  { details, state, expiresAt }: Approval,
): Promise<LaneSpec | undefined> {
  return state === 'open' && expiresAt > tx.now ? keptIn(details)?.lane : undefined;
}

export async function admitGroup(tx: StepTx, { approval, by, effects }: OpenDecision): Promise<string> {
  const { route } = approval.details;
  const kept = keptIn(approval.details);
  if (kept) {
    const { account } = kept.route;
    await answerKept(tx, { kept, account, senderId: kept.senderId, authority: 'owner', effects });
  }
  if (route !== undefined) await setAdmitted(tx, json.route(route), by.ref);
  return fillText(tx.texts.groupAdmitted, { by: by.label });
}

export async function dropGroup(
  tx: StepTx,
  { details }: Approval,
  { state, by }: Pick<ApprovalEnd, 'state' | 'by'>,
): Promise<string> {
  const kept = keptIn(details);
  if (kept) await leaveFiles(tx, { route: kept.route, files: kept.content.attachments });
  return state === 'expired'
    ? tx.texts.approvalExpired
    : fillText(tx.texts.approvalWasDenied, { by: by ?? '' });
}

/** Changes or drops the message kept for a group, if the event is about it. */
export async function changeKeptMention(
  tx: Tx,
  {
    subject,
    senderId,
    messageId,
  }: { readonly subject: string; readonly senderId: string; readonly messageId: string | undefined },
  change: (known: KeptMessage) => KeptMessage | undefined,
): Promise<void> {
  const open = await readOpenApproval(tx, { kind: 'group', subject });
  const kept = open && keptIn(open.details);
  if (!kept || kept.messageId !== messageId || kept.senderId !== senderId) return;
  const changed = change(kept);
  if (changed === undefined) await leaveFiles(tx, { route: kept.route, files: kept.content.attachments });
  await addDetails(tx, open, { kept: changed && JSON.stringify({ ...changed, senderId }) });
}

function keptIn({ kept }: Approval['details']): KeptMention | undefined {
  // Written by `askInGroup`.
  return kept === undefined ? undefined : (parseJson(kept) as KeptMention);
}

/** Records who admitted the group, or that it is no longer admitted; follows a group that has moved. */
async function setAdmitted(tx: Tx, route: ReplyRoute, by: string | null, moves = 0): Promise<void> {
  const key = conversationKeyOf(route);
  await ensureConversation(tx, key);
  const row = await tx.db
    .updateTable('conversations')
    .set({ admittedBy: by })
    .where('key', '=', key)
    .returning('movedTo')
    .executeTakeFirst();
  if (row?.movedTo == null || moves >= maxMoves) return;
  // The platform's own id, which the store keeps as plain text.
  await setAdmitted(tx, { ...route, conversation: row.movedTo as ReplyRoute['conversation'] }, by, moves + 1);
}

/** Withdraws the group's admission. Returns false if no owner had admitted it. */
export async function dismissGroup(tx: Tx, conversationKey: string): Promise<boolean> {
  const { numUpdatedRows } = await tx.db
    .updateTable('conversations')
    .set({ admittedBy: null })
    .where('key', '=', conversationKey)
    .where('admittedBy', 'is not', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0;
}

type Kept = {
  readonly kept: KeptMessage;
  readonly account: string;
  readonly senderId: string;
  readonly authority: Authority;
  readonly effects: Effects;
};

/** How long to wait for a kept message's file, ms; the same as for any other message. */
const fetchWaitMs = 20_000;

/** Places a message that waited for an approval in its lane, and records it in the ledger as accepted. */
async function answerKept(tx: StepTx, { kept, account, senderId, authority, effects }: Kept): Promise<void> {
  const { id, lane: spec, route, content, eventKey, messageId } = kept;
  const lane = await ensureLane(tx, spec);
  const isFetching = content.attachments.length > 0;
  const conversationKey = conversationKeyOf(route);
  await placeItem(
    tx,
    lane,
    {
      ...{ id, content, account, conversationKey, messageId, isFetching, senderId, authority },
      kind: 'message',
      source: 'platform',
      reach: 'mode',
      target: route,
      bundle: null,
      isHeld: false,
      dueAt: tx.now + (isFetching ? fetchWaitMs : 0),
    },
    effects,
  );
  await acceptEntry(tx, { account, eventKey }, { inboxId: id, laneKey: lane.key });
}

/** Removes a void code from the outbox too, unless it is being sent at the moment. */
export async function blankNotice(tx: StepTx, noticeKey: string): Promise<void> {
  const content = JSON.stringify({ kind: 'text', text: { text: tx.texts.pairingCodeGone, spans: [] } });
  await tx.db
    .updateTable('outbox')
    .set({ content })
    .where('key', '=', noticeKey)
    .where('state', '<>', 'sending')
    .execute();
}

// Applies the answer to a pairing request.

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
