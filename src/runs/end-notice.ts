import type { EndReason } from '#contracts/agent-event.ts';
import type { BudgetScope, ModelFailure } from '#contracts/model.ts';
import { budgetNames } from '../models/budget-rules.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';

/** Returns the notice for a run that didn't end naturally; undefined means the general one. */
export function endNotice(
  reason: EndReason,
  failure: ModelFailure | undefined,
  texts: ChatTexts,
): string | undefined {
  switch (reason) {
    case 'timeout':
      return texts.runTimeout;
    case 'loop_guard':
      return texts.loopGuard;
    case 'turn_limit':
      return texts.turnLimit;
    case 'idle':
      return texts.modelUnavailable;
    case 'model_error':
      return modelNotice(failure, texts);
    case 'compaction_failed':
      return failure?.kind === 'budget' ? modelNotice(failure, texts) : texts.compactionFailed;
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

function modelNotice(failure: ModelFailure | undefined, texts: ChatTexts): string {
  if (failure === undefined) return texts.modelUnavailable;
  const { kind, retry, refusal } = failure;
  switch (kind) {
    case 'unauthorised':
      return refusal === 'credit' || refusal === 'forbidden' ? texts.modelAccount : texts.modelUnauthorised;
    case 'failed':
      // The owner is alerted of a wrong address or model.
      if (refusal === 'address' || refusal === 'no-model') return texts.modelUnavailable;
      // A stream that broke off may succeed next time; a rejected request won't.
      return retry?.kind === 'later' ? texts.modelUnavailable : texts.modelFailed;
    case 'unsendable':
      return texts.modelUnsendable;
    case 'oversized':
      return texts.modelOversized;
    case 'overflow':
      return failure.fixedTokens === undefined ? texts.modelOverflow : texts.modelTooSmall;
    case 'refused':
      return texts.modelDeclined;
    case 'budget':
      return budgetNotice(failure.budget ?? 'gateway', texts);
    case 'overloaded':
      return failure.isLongWait ? texts.modelAllowance : texts.modelUnavailable;
    case 'aborted':
      return texts.modelUnavailable;
    default:
      return kind satisfies never;
  }
}

/** Names the spent budget and how to raise it. */
export function budgetNotice(scope: BudgetScope, texts: ChatTexts): string {
  return fillText(texts.budgetSpent, { which: texts[budgetNames[scope]], scope });
}
