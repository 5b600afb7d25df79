/**
 * Decides a question, in the transaction of whatever brought the answer: a press, a command, the page or the
 * console. Rights count, not the place; one answer counts, and any other is told what became of the question.
 */
import type { PressResult } from '#contracts/acceptance.ts';
import type { MessageId } from '#contracts/ids.ts';
import { fillNotice, type Notices } from '../../texts/notices.ts';
import {
  type Approval,
  type ApprovalEnd,
  type ApprovalKind,
  closeApproval,
  lockApproval,
  readApproval,
} from '../approvals/approval-states.ts';
import { tellResult, type Verdict } from '../approvals/ask.ts';
import type { CommandPlace, StepTx, StoreCommand, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import type { LaneRef } from '../base/lane-spec.ts';
import { lockAccounts } from '../processes/accounts.ts';
import { lockOrMakeLanes } from '../rows/lane-row.ts';
import { admitGroup, describeGroup } from './admit-group.ts';
import { admitRequest, dropRequest, laneOfKept } from './admit-request.ts';
import type { Decider, OpenDecision } from './decider.ts';
import { lockAttempts } from './pairing-attempts.ts';

export type Decision = {
  readonly id: string;
  readonly verdict: Verdict;
  readonly by: Decider;
  /** The message whose button was pressed. */
  readonly pressed?: MessageId;
};

/** The result of an answer, also in words. */
export type DecisionResult = { readonly kind: PressResult; readonly text: string };

/** Effects of each answer to a kind of question. */
type KindSteps = {
  /** The lane that an approval puts something into, read under the lock of the question's account. */
  laneOf?(tx: Tx, approval: Approval): Promise<LaneRef | undefined>;
  /** Carries the approval out; returns what takes the question's place. */
  approve(tx: StepTx, deciding: OpenDecision): Promise<string>;
  /** Refused or expired; returns what takes the question's place. */
  drop(tx: StepTx, approval: Approval, end: Pick<ApprovalEnd, 'state' | 'by'>): Promise<string>;
};

const steps: Readonly<Record<ApprovalKind, KindSteps>> = {
  pairing: { laneOf: laneOfKept, approve: admitRequest, drop: dropRequest },
  group: { approve: admitGroup, drop: describeGroup },
};

/** Account and lane of a command, or the account of a press. */
type DecisionPlace = Pick<CommandPlace, 'account'> & Partial<Pick<CommandPlace, 'lane'>>;

/**
 * Locks all that a decision needs but conversations: the row of all approvals when it may make the first owner, the
 * question's account, the lane that it puts something into, and the question. `place` is where the decision came from.
 */
export async function lockDecision(
  tx: StepTx,
  { id, verdict, by }: Omit<Decision, 'pressed'>,
  place?: DecisionPlace,
): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  const approval = by.isOwner ? await readApproval(tx, id) : undefined;
  const isApproved = verdict === 'approve';
  // Made for all accounts together.
  if (approval && isApproved && by.role === 'owner-if-none') await lockAttempts(tx);
  const accounts = [place?.account, approval?.details.account].filter((key) => key !== undefined);
  await lockAccounts(tx, [...new Set(accounts)]);
  const entered = approval && isApproved ? await steps[approval.kind].laneOf?.(tx, approval) : undefined;
  const lanes = [place?.lane, entered].filter((ref) => ref !== undefined);
  if (lanes.length > 0) await lockOrMakeLanes(tx, lanes);
  if (approval) await lockApproval(tx, id);
}

/** Safe to repeat: a question is decided once, by compare and set on its row. */
export async function decideApproval(
  tx: StepTx,
  decision: Decision,
  effects: Effects,
): Promise<DecisionResult> {
  const { id, verdict, by, pressed } = decision;
  await lockDecision(tx, decision);
  const approval = await readApproval(tx, id);
  if (!approval) return { kind: 'unknown', text: tx.texts.approvalUnknown };
  if (!by.isOwner) return told(tx, approval, 'foreign');
  const kind = steps[approval.kind];
  const end = { id, state: verdict === 'approve' ? 'approved' : 'denied', by: by.label } as const;
  if (!(await closeApproval(tx, end))) return told(tx, (await readApproval(tx, id)) ?? approval, 'late');
  const text =
    verdict === 'approve'
      ? await kind.approve(tx, { approval, by, effects })
      : await kind.drop(tx, approval, end);
  const shownIn = await tellResult(tx, { id, text, pressed });
  if (shownIn !== undefined) effects.deliveries.push(shownIn);
  return { kind: end.state, text };
}

/** Answers somebody whose answer doesn't count. */
function told({ texts, now }: StepTx, approval: Approval, kind: 'foreign' | 'late'): DecisionResult {
  if (approval.state !== 'open') return { kind, text: describeEnd(texts, approval) };
  const isOver = approval.expiresAt <= now;
  return { kind, text: isOver ? texts.approvalExpired : texts.approvalForeign };
}

function describeEnd(texts: Notices, { state, decidedBy }: Approval): string {
  switch (state) {
    case 'approved':
      return fillNotice(texts.approvalWasApproved, { by: decidedBy });
    case 'denied':
      return fillNotice(texts.approvalWasDenied, { by: decidedBy });
    case 'open':
    case 'expired':
      return texts.approvalExpired;
    default:
      return state satisfies never;
  }
}

/** An answer from the page. */
export const decideOnPage: StoreCommand<
  Omit<Decision, 'pressed'>,
  { readonly decided: DecisionResult; readonly effects: Effects }
> = {
  name: 'decideOnPage',
  run: async (tx, decision) => {
    const effects = noEffects();
    return { decided: await decideApproval(tx, decision, effects), effects };
  },
};

/**
 * Ends a question whose time is over, and forgets what was kept for it. One alone: it locks what an answer locks, in that
 * order, and two questions in one step would hold the first one's rows while they wait for the second's. Safe to repeat.
 */
export const expireQuestion: StoreCommand<{ readonly id: string }, Effects> = {
  name: 'expireQuestion',
  run: async (tx, { id }) => {
    const effects = noEffects();
    const approval = await readApproval(tx, id);
    if (approval) await expireApproval(tx, approval, effects);
    return effects;
  },
};

/** Ends a question whose time is over, in the step that forgets its request. */
export async function expireApproval(tx: StepTx, approval: Approval, effects: Effects): Promise<void> {
  const { id, details } = approval;
  if (details.account !== undefined) await lockAccounts(tx, [details.account]);
  const end = { id, state: 'expired', by: null } as const;
  if (!(await closeApproval(tx, end))) return;
  const shownIn = await tellResult(tx, { id, text: await steps[approval.kind].drop(tx, approval, end) });
  if (shownIn !== undefined) effects.deliveries.push(shownIn);
}
