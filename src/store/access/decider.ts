import type { Approval } from '../approvals/approval-states.ts';
import type { Effects } from '../base/effects.ts';
import type { Role } from './sender-roles.ts';

/** The person who answers a question. */
export type Decider = {
  /** `channel:peer`, `console` or `page`. */
  readonly ref: string;
  /** Reference and name, as shown to others. */
  readonly label: string;
  readonly isOwner: boolean;
  /** Role of a person they approve. */
  readonly role: Role | 'owner-if-none';
};

/** A question that is being decided. */
export type OpenDecision = {
  readonly approval: Approval;
  readonly by: Decider;
  readonly effects: Effects;
};
