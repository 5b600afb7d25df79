/** Groups that an owner has admitted, in addition to those that the configuration names. */

import { parseJson } from '#channel-kit/parse-json.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { fillText } from '../../texts/chat-texts.ts';
import {
  type Approval,
  type ApprovalEnd,
  addDetails,
  openApproval,
  readOpenApproval,
} from '../approvals/approval-states.ts';
import { askQuestion } from '../approvals/ask.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';
import { json, type KeptMessage } from '../base/json.ts';
import type { LaneSpec } from '../base/lane-spec.ts';
import { ensureConversation, maxMoves } from '../delivery/insert-part.ts';
import { leaveFiles } from '../rows/left-files.ts';
import { answerKept } from './answer-kept.ts';
import type { OpenDecision } from './decider.ts';

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
  return askQuestion(tx, { id, route, text, choices });
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
