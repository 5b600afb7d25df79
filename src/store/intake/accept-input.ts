import type { Effects } from '../base/effects.ts';
import type { LaneViews } from './lane-views.ts';
import type { AcceptInput, Proposal } from './proposal.ts';

/** One event being accepted, with the batch's shared input and the place where its effects are collected. */
export type AcceptEventInput = {
  readonly input: AcceptInput;
  readonly proposal: Proposal;
  readonly effects: Effects;
  readonly views: LaneViews;
};
