/** Groups that an owner has admitted, in addition to those that the configuration names. */
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { fillNotice } from '../../texts/notices.ts';
import type { Approval, ApprovalEnd } from '../approvals/approval-states.ts';
import { openApproval } from '../approvals/approval-states.ts';
import { askQuestion } from '../approvals/ask.ts';
import type { StepTx, Tx } from '../base/command.ts';
import { conversationKeyOf } from '../base/conversation-key.ts';
import { json } from '../base/json.ts';
import { ensureConversation, maxMoves } from '../delivery/insert-part.ts';
import type { OpenDecision } from './decider.ts';

/** An unlisted group in which an owner addresses the bot. */
export type GroupRequest = { readonly id: string; readonly route: ReplyRoute };

/** How long the button is valid, ms. */
const validMs = 24 * 3_600_000;

/** Asks in the group whether to answer there. Returns the conversation to deliver in; undefined if already asking. */
export async function askInGroup(tx: StepTx, { id, route }: GroupRequest): Promise<string | undefined> {
  const subject = conversationKeyOf(route);
  const text = tx.texts.groupAsk;
  const details = { question: text, route: JSON.stringify(withoutQuote(route)) };
  if (!(await openApproval(tx, { id, kind: 'group', subject, details, validMs }))) return undefined;
  const choices = [{ verdict: 'approve', label: tx.texts.groupAnswerHere }] as const;
  return askQuestion(tx, { id, route, text, choices });
}

export async function admitGroup(tx: StepTx, { approval, by }: OpenDecision): Promise<string> {
  const { route } = approval.details;
  if (route !== undefined) await setAdmitted(tx, json.route(route), by.ref);
  return fillNotice(tx.texts.groupAdmitted, { by: by.label });
}

export async function describeGroup(
  tx: StepTx,
  _: Approval,
  { state, by }: Pick<ApprovalEnd, 'state' | 'by'>,
): Promise<string> {
  return state === 'expired'
    ? tx.texts.approvalExpired
    : fillNotice(tx.texts.approvalWasDenied, { by: by ?? '' });
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
