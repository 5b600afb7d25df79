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
  readApproval,
} from '../approvals/approval-states.ts';
import { tellResult, type Verdict } from '../approvals/ask.ts';
import type { StepTx, StoreCommand } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import { admitGroup, describeGroup } from './admit-group.ts';
import { admitRequest, dropRequest, lockRequest } from './admit-request.ts';
import type { Decider, OpenDecision } from './decider.ts';

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
  /** Takes the locks that come before the question's own row. `by`: absent when it expires. */
  lock?(tx: StepTx, approval: Approval, by?: Decider): Promise<void>;
  /** Carries the approval out; returns what takes the question's place. */
  approve(tx: StepTx, deciding: OpenDecision): Promise<string>;
  /** Refused or expired; returns what takes the question's place. */
  drop(tx: StepTx, approval: Approval, end: Pick<ApprovalEnd, 'state' | 'by'>): Promise<string>;
};

const steps: Readonly<Record<ApprovalKind, KindSteps>> = {
  pairing: { lock: lockRequest, approve: admitRequest, drop: dropRequest },
  group: { approve: admitGroup, drop: describeGroup },
};

/** Safe to repeat: a question is decided once, by compare and set on its row. */
export async function decideApproval(
  tx: StepTx,
  decision: Decision,
  effects: Effects,
): Promise<DecisionResult> {
  const { id, verdict, by, pressed } = decision;
  const approval = await readApproval(tx, id);
  if (!approval) return { kind: 'unknown', text: tx.texts.approvalUnknown };
  if (!by.isOwner) return told(tx, approval, 'foreign');
  const kind = steps[approval.kind];
  await kind.lock?.(tx, approval, by);
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
  const { id } = approval;
  const kind = steps[approval.kind];
  await kind.lock?.(tx, approval);
  const end = { id, state: 'expired', by: null } as const;
  if (!(await closeApproval(tx, end))) return;
  const shownIn = await tellResult(tx, { id, text: await kind.drop(tx, approval, end) });
  if (shownIn !== undefined) effects.deliveries.push(shownIn);
}
