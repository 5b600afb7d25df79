import type { Approval } from '../approvals/approval-states.ts';
import type { Effects } from '../base/effects.ts';
import type { Role } from './sender-roles.ts';

/** Who answers a question. */
export type Decider = {
  /** `channel:peer`, `console` or `page`. */
  readonly ref: string;
  /** Reference and name, as others read them. */
  readonly label: string;
  readonly isOwner: boolean;
  /** Role of a person whom they let in. */
  readonly role: Role | 'owner-if-none';
};

/** A question that is being decided. */
export type OpenDecision = {
  readonly approval: Approval;
  readonly by: Decider;
  readonly effects: Effects;
};
