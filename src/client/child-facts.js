/** Texts about a sub-agent, the same on page and terminal. */
import { durationText } from './duration.js';

/** @import { ChildView } from '#contracts/child.ts' */

/**
 * Returns its state; once it is done how it ended, its duration and its tokens: `done in 12 s, 3,400 tokens`.
 * @param {ChildView} child
 */
export function childFacts({ state, status = 'completed', startedAt, endedAt, tokens }) {
  if (state !== 'done') return state;
  const end = status === 'completed' ? 'done' : status;
  if (startedAt === undefined) return end;
  const counted = `${tokens.toLocaleString()} ${tokens === 1 ? 'token' : 'tokens'}`;
  return `${end} in ${childDuration({ startedAt, endedAt })}, ${counted}`;
}

/**
 * Returns the time from its first claim to its end, both in ms, or until now.
 * @param {{ readonly startedAt?: number | undefined, readonly endedAt?: number | undefined }} times
 */
export function childDuration({ startedAt, endedAt = Date.now() }) {
  return startedAt === undefined ? '–' : durationText(endedAt - startedAt);
}
