import { neverStarted, skipped } from '#contracts/message.ts';
import type { AbortReason } from './run-scope.ts';

/** Texts that tell the model why a call didn't run. */
export const resultText = {
  denied: 'permission denied',
  cancelled: neverStarted,
  skipped,
  repeated: 'not run: this same call was made too many times in a row',
  cutOff: 'not run: the call was cut off before it was complete',
  truncated: 'not run: the answer reached its length limit, so the arguments may be incomplete',
  noTools: 'not run: no tools are available for this answer',
  brokenOff: "not run: the model's answer broke off",
  mayNotWait: 'the tool asked to wait for an answer, which only a durable tool may do',
} as const;

/** Returns the same text for a call that had started and may have had its effect. */
export function begunText(text: string): string {
  return `${text}; it had started, outcome unknown`;
}

/** Returns the result text of a call that the end of the run kept from running or finishing. */
export function cutText(cut: AbortReason | undefined): string {
  switch (cut) {
    case 'timeout':
      return "cancelled: the run's time was up";
    case 'idle':
      return 'cancelled: the model stopped answering';
    case 'aborted':
    case undefined:
      return 'cancelled by user';
  }
}
