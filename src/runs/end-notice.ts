import type { EndReason } from '#contracts/agent-event.ts';
import type { BudgetScope, ModelFailure } from '#contracts/model.ts';
import { budgetNames } from '../models/budget-rules.ts';
import { fillNotice, type Notices } from '../texts/notices.ts';

/** Returns the notice for a run that didn't end naturally; undefined means the general one. */
export function endNotice(
  reason: EndReason,
  failure: ModelFailure | undefined,
  notices: Notices,
): string | undefined {
  switch (reason) {
    case 'timeout':
      return notices.runTimeout;
    case 'loop_guard':
      return notices.loopGuard;
    case 'turn_limit':
      return notices.turnLimit;
    case 'idle':
      return notices.modelUnavailable;
    case 'model_error':
      return modelNotice(failure, notices);
    case 'compaction_failed':
      return failure?.kind === 'budget' ? modelNotice(failure, notices) : notices.compactionFailed;
    case 'natural':
    case 'aborted':
    case 'stopped':
    case 'parked':
    case 'failed':
      return undefined;
    default:
      return reason satisfies never;
  }
}

function modelNotice(failure: ModelFailure | undefined, notices: Notices): string {
  if (failure === undefined) return notices.modelUnavailable;
  const { kind, retry, refusal } = failure;
  switch (kind) {
    case 'unauthorised':
      return refusal === 'credit' || refusal === 'forbidden'
        ? notices.modelAccount
        : notices.modelUnauthorised;
    case 'failed':
      // The owner is alerted of a wrong address or model.
      if (refusal === 'address' || refusal === 'no-model') return notices.modelUnavailable;
      // A stream that broke off may succeed next time; a rejected request won't.
      return retry?.kind === 'later' ? notices.modelUnavailable : notices.modelFailed;
    case 'unsendable':
      return notices.modelUnsendable;
    case 'oversized':
      return notices.modelOversized;
    case 'overflow':
      return failure.fixedTokens === undefined ? notices.modelOverflow : notices.modelTooSmall;
    case 'refused':
      return notices.modelDeclined;
    case 'budget':
      return budgetNotice(failure.budget ?? 'gateway', notices);
    case 'overloaded':
      return failure.isLongWait ? notices.modelAllowance : notices.modelUnavailable;
    case 'aborted':
      return notices.modelUnavailable;
    default:
      return kind satisfies never;
  }
}

/** Names the spent budget and how to raise it. */
export function budgetNotice(scope: BudgetScope, notices: Notices): string {
  return fillNotice(notices.budgetSpent, { which: notices[budgetNames[scope]], scope });
}
