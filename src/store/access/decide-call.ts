/** Decides about a call that a run is parked for, and lets the run continue when nothing is left to decide. */
import { parseJson } from '#channel-kit/parse-json.ts';
import type { MessageId } from '#contracts/ids.ts';
import { type Authority, lowestAuthority } from '#contracts/outcome.ts';
import { fillText } from '../../texts/chat-texts.ts';
import type { Verdict } from '../approvals/approval.ts';
import {
  type CallApproval,
  endCallApproval,
  endOpenQuestions,
  readCallApproval,
  readOpenOf,
  tellEnd,
} from '../approvals/call-approval.ts';
import { insertGrant } from '../approvals/grant.ts';
import type { StepTx } from '../base/command.ts';
import type { Effects } from '../base/effects.ts';
import { findRow } from '../base/row-access.ts';
import { lockLane } from '../rows/lane.ts';
import { unpark } from '../waits/parked.ts';
import type { Decider } from './sender-roles.ts';

type DecideCall = {
  readonly id: string;
  readonly verdict: Verdict;
  readonly by: Decider;
  readonly pressed?: MessageId;
};

/** The result of an answer, with its text for the chat. */
type CallAnswer = {
  readonly kind: 'approved' | 'denied' | 'late' | 'foreign' | 'unknown';
  readonly text: string;
};

/**
 * Decides the question. Safe to repeat: it is decided once, by compare and set on its row, under the lane's lock. The
 * caller has locked the lane; here its row is read again, for its state behind that lock.
 */
export async function decideCall(
  tx: StepTx,
  { id, verdict, by, pressed }: DecideCall,
  effects: Effects,
): Promise<CallAnswer> {
  const { texts } = tx;
  const seen = await readCallApproval(tx, id);
  if (!seen) return { kind: 'unknown', text: texts.approvalUnknown };
  const lane = await lockLane(tx, seen.laneKey);
  const approval = (await readCallApproval(tx, id)) ?? seen;
  const isForeign = !mayDecide(approval, by);
  if (approval.state !== 'open') {
    if (!isForeign && pressed !== undefined) await showEnd(tx, approval, pressed, effects);
    return { kind: isForeign ? 'foreign' : 'late', text: describeEnd(tx, approval) };
  }
  if (isForeign) return { kind: 'foreign', text: texts.callForeign };
  const isApproved = verdict !== 'deny';
  const sentence = fillText(sentenceFor(tx, verdict), { tool: approval.tool, by: by.label });
  const state = isApproved ? 'approved' : 'denied';
  if (!(await endCallApproval(tx, approval, { state, by: by.label, sentence, pressed }, effects)))
    return { kind: 'late', text: texts.approvalExpired };
  if (verdict === 'always') await insertGrant(tx, approval, by.label);
  if (!isApproved) await endOpenQuestions(tx, approval.runId, 'void', effects);
  const mayContinue = (await readOpenOf(tx, approval.runId)).length === 0;
  if (mayContinue && lane?.runId === approval.runId) await unpark(tx, lane, effects);
  return { kind: state, text: sentence };
}

function sentenceFor({ texts }: StepTx, verdict: Verdict): string {
  switch (verdict) {
    case 'approve':
      return texts.callApproved;
    case 'always':
      return texts.callGranted;
    case 'deny':
      return texts.callDenied;
    default:
      return verdict satisfies never;
  }
}

/**
 * Shows the end in the message whose button was pressed late: its own edit was dropped if nobody knew then whether the
 * question had arrived. Safe to repeat: a message is edited once.
 */
async function showEnd(
  tx: StepTx,
  approval: CallApproval,
  pressed: MessageId,
  effects: Pick<Effects, 'deliveries'>,
): Promise<void> {
  const { id, tool, decidedBy: by } = approval;
  const isGranted = (await findRow(tx, 'grants', id, ['id'])) !== undefined;
  const text = isGranted ? tx.texts.callGranted : endTexts(tx)[approval.state];
  await tellEnd(tx, approval, { sentence: fillText(text, { tool, by: by ?? '' }), pressed }, effects);
}

function endTexts({ texts }: StepTx): Readonly<Record<CallApproval['state'], string>> {
  const { callApproved: approved, callDenied: denied, callExpired: expired, callVoid, callQuestion } = texts;
  return { approved, denied, expired, void: callVoid, open: callQuestion };
}

function describeEnd({ texts }: StepTx, { state, decidedBy, tool }: CallApproval): string {
  switch (state) {
    case 'approved':
      return fillText(texts.approvalWasApproved, { by: decidedBy });
    case 'denied':
      return fillText(texts.approvalWasDenied, { by: decidedBy });
    case 'void':
      return fillText(texts.callVoid, { tool });
    case 'open':
    case 'expired':
      return texts.approvalExpired;
    default:
      return state satisfies never;
  }
}

/** Ends an expired question, and those beside it; its run continues with the denial. Safe to repeat. */
export async function expireCall(tx: StepTx, id: string, effects: Effects): Promise<void> {
  const seen = await readCallApproval(tx, id);
  if (!seen) return;
  const lane = await lockLane(tx, seen.laneKey);
  const approval = await readCallApproval(tx, id);
  if (approval?.state !== 'open' || approval.expiresAt > tx.now) return;
  const run = await findRow(tx, 'runs', approval.runId, ['state']);
  const sentence = fillText(tx.texts.callExpired, { tool: approval.tool });
  await endCallApproval(tx, approval, { state: 'expired', sentence }, effects);
  await endOpenQuestions(tx, approval.runId, 'void', effects);
  if (run?.state === 'parked' && lane?.runId === approval.runId) await unpark(tx, lane, effects);
}

/** Says whether the person may decide: an owner, or the person who caused the call if their rights still suffice for it. */
function mayDecide({ askers, authority }: CallApproval, by: Decider): boolean {
  if (by.isOwner) return true;
  // Written by `askAboutCalls`, from the tool's definition.
  const needed = authority as Authority;
  const asked = parseJson(askers) as readonly string[];
  const suffices = by.authority !== undefined && lowestAuthority(by.authority, needed) === needed;
  return suffices && (by.refs ?? [by.ref]).some((ref) => asked.includes(ref));
}
