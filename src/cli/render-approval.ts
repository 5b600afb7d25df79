import type { ApprovalFacts } from '../store/reads/why/read-approvals.ts';
import { type Fact, timeOf } from './fact-lines.ts';

/** Says what was asked, and when. */
export function approvalFact({ id, kind, about, account, createdAt }: ApprovalFacts): Fact {
  const what =
    kind === 'group'
      ? `whether to answer in ${about}`
      : `whether to let ${about ?? 'a person'} in${account === undefined ? '' : ` at ${account}`}`;
  return { at: createdAt, text: `question ${id} was asked: ${what}` };
}

/** Says how the question was decided, or until when it can be. */
export function approvalEnd({ id, state, decidedBy, expiresAt, isOver }: ApprovalFacts): string {
  switch (state) {
    case 'open':
      if (isOver) return `question ${id} expired at ${timeOf(expiresAt)}`;
      return `question ${id} is open until ${timeOf(expiresAt)}; an owner can decide it`;
    case 'expired':
      return `question ${id} expired at ${timeOf(expiresAt)} without a decision`;
    case 'approved':
    case 'denied':
      return `question ${id} was ${state} by ${decidedBy ?? 'someone unknown'}`;
    default:
      return state satisfies never;
  }
}
