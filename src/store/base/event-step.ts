import type { Effects } from './effects.ts';

/** The platform event that a step handles, and where the step's effects are collected. */
export type EventStep = {
  readonly input: { readonly account: string };
  readonly proposal: { readonly eventKey: string; readonly conversationKey: string };
  readonly effects: Effects;
};
