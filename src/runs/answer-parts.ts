import type { MessageId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { Outcome } from '#contracts/outcome.ts';
import { type ReplyRoute, type RunTarget, withoutQuote } from '#contracts/route.ts';
import { quotingParts, type ReplyPlan, type ReplyToMode } from '../replies/reply-pipeline.ts';
import type { RoutedPart } from '../store/lanes/commit-answer.ts';
import type { LivePreview } from '../store/lanes/recover-run.ts';

/** Returns the route of a preview, which quotes the message that an answer quotes unless the model names another. */
export function previewRoute(route: ReplyRoute, replyToMode: ReplyToMode): ReplyRoute {
  const bare = withoutQuote(route);
  const isQuoted = quotingParts(replyToMode, route) !== 'off' && route.replyTo !== undefined;
  return isQuoted ? { ...bare, replyTo: route.replyTo } : bare;
}

type AnswerPlace = {
  readonly target: RunTarget;
  readonly standing: LivePreview | undefined;
  readonly replyToMode: ReplyToMode;
};

/**
 * Returns the parts of an answer for the outbox. A shown preview becomes the first part, unless the answer is silent or
 * its first part can't be edited in place: then the preview is removed.
 */
export function answerParts(
  plan: ReplyPlan,
  { target, standing, replyToMode }: AnswerPlace,
): readonly RoutedPart[] {
  if (target === 'record') return [];
  const bare = withoutQuote(target);
  const removal = standing ? [removePreview(bare, standing)] : [];
  if (plan.kind === 'silent' || plan.kind === 'suppressed') return removal;
  const parts = plan.parts.map(
    ({ content, replyTo, isNotice }): RoutedPart => ({
      route: replyTo === undefined ? bare : { ...bare, replyTo },
      content,
      purpose: plan.kind === 'send' && !isNotice ? 'reply' : 'notice',
    }),
  );
  const [first, ...rest] = parts;
  if (!standing || !first) return parts;
  // An edit can't change which message is quoted.
  const quotesTheSame = first.route.replyTo === previewRoute(target, replyToMode).replyTo;
  if (first.content.kind !== 'text' || !quotesTheSame) return [...removal, ...parts];
  const content: OutboundContent = {
    kind: 'edit',
    messageId: platformId(standing),
    text: first.content.text,
  };
  return [{ ...first, content }, ...rest];
}

function removePreview(route: ReplyRoute, standing: LivePreview): RoutedPart {
  return { route, content: { kind: 'delete', messageId: platformId(standing) }, purpose: 'notice' };
}

function platformId({ messageId }: LivePreview): MessageId {
  // The store keeps receipts as plain text; this id came from the platform.
  return messageId as MessageId;
}

/** Returns the outcome of the answered message, provisional until its parts have ended. */
export function outcomeOf(plan: ReplyPlan): { readonly outcome: Outcome; readonly outcomeReason?: string } {
  switch (plan.kind) {
    case 'send':
      return plan.isCut
        ? { outcome: 'answered', outcomeReason: 'cut off at its length limit' }
        : { outcome: 'answered' };
    case 'silent':
      return { outcome: 'silent' };
    case 'suppressed':
      // A tool has answered.
      return { outcome: 'answered', outcomeReason: plan.reason };
    case 'fallback':
      return { outcome: 'failed', outcomeReason: plan.why };
    default:
      return plan satisfies never;
  }
}
