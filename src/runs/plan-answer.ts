import type { AgentEvent, EndReason } from '#contracts/agent-event.ts';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { DisplayChoice } from '#contracts/display.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import { type AgentMessage, finishReasonOf, sourcesOf, textOf } from '#contracts/message.ts';
import type { BudgetScope, ModelFailure } from '#contracts/model.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { Outcome } from '#contracts/outcome.ts';
import type { Part } from '#contracts/part.ts';
import { type ReplyRoute, type RunTarget, routeOf, withoutQuote } from '#contracts/route.ts';
import type { PreparedMessage } from '../hooks/prepare-message.ts';
import { budgetNames } from '../models/budget-rules.ts';
import { leadsOf, withLeads } from '../replies/answer-leads.ts';
import { blocksAfter, isContinued } from '../replies/block-stream.ts';
import type { ToolSend } from '../replies/dedupe.ts';
import { markStopped } from '../replies/preview.ts';
import {
  decideReply,
  planReply,
  quotingParts,
  type ReplyInput,
  type ReplyMedia,
  type ReplyPlan,
  type ReplyToMode,
  shapeInternalFailure,
  withSources,
} from '../replies/reply-pipeline.ts';
import type { SilenceContext } from '../replies/silence.ts';
import { isInvisible, type TextShaper } from '../replies/text-shaper.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { LivePreview } from '../store/lanes/recover-run.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';
import type { StopReason } from './active-runs.ts';
import type { BlocksSent } from './answer-blocks.ts';

/** The setting in which an answer or the end of a run is shown. */
export type AnswerScene = {
  readonly run: Pick<ClaimedRun, 'target' | 'chatKind'>;
  readonly capabilities: Capabilities;
  readonly replyToMode: ReplyToMode;
  readonly texts: ChatTexts;
};

/** The run's actions since its last answer. */
export type RunActions = {
  readonly toolSends: readonly ToolSend[];
  /** Files that tools attached to the next answer. */
  readonly files: readonly ReplyMedia[];
  readonly toolFailure: { readonly tool: string } | undefined;
  /** Lines about the calls, for those who want to see them. */
  readonly lines: readonly string[];
  /** Whether to drop an answer that only acknowledges what a tool has sent. */
  readonly suppressAcknowledgements: boolean;
};

/** How an answer is judged and shaped. */
export type AnswerShaping = AnswerScene & {
  readonly shaper: TextShaper;
  /** Which words mean "send nothing", depending on the messages that the run has taken. */
  readonly silence: SilenceContext;
  /** Says whether the model has seen the message with this platform id in the conversation it answers. */
  hasSeen(messageId: string): Promise<boolean>;
  readonly display: DisplayChoice;
  /** A preview of it is shown. */
  readonly hasPreview?: boolean;
  /** Blocks that were sent of the answer while it was written. */
  readonly blocks?: BlocksSent | undefined;
  /** Has hooks judge the complete text; absent: it is sent as it is. */
  readonly prepare?: ((text: string, route: ReplyRoute) => Promise<PreparedMessage>) | undefined;
};

/** Plans the reply to send. Asynchronous for texts too long for the event loop, to check a quoted id, and for hooks. */
export async function planAnswer(
  message: AgentMessage,
  scene: AnswerShaping,
  actions: RunActions,
): Promise<ReplyPlan> {
  const { run, shaper, silence, hasSeen, display, blocks, prepare, ...rest } = scene;
  const input: ReplyInput = {
    ...rest,
    text: textOf(message.parts),
    isCut: finishReasonOf(message.parts) === 'max_tokens',
    toolSends: actions.toolSends,
    media: actions.files,
    route: routeOf(run.target),
    chatKind: run.chatKind,
    silenceContext: silence,
    ...(actions.toolFailure && { toolFailure: actions.toolFailure }),
    ...(!actions.suppressAcknowledgements && { acknowledgements: [] }),
  };
  const judged = decideReply(input);
  const { replyTag } = judged;
  // The model may name any id, even one that somebody gave it; messages of other conversations aren't quoted.
  const isForeign = replyTag !== undefined && replyTag !== 'current' && !(await hasSeen(replyTag));
  const reply = isForeign ? { ...judged, replyTag: undefined } : judged;
  const { decided } = reply;
  const written = decided.kind === 'text' && withSources(decided.text, sourcesOf(message.parts));
  const route = routeOf(run.target);
  const prepared = written && route && (await prepare?.(written, route));
  if (prepared && prepared.kind === 'cancelled') return prepared;
  const shown = prepared ? prepared.text : written;
  if (!shown) return planReply(input, reply, []);
  const unsent = blocks
    ? blocksAfter(shown, blocks.sent, blocks.limits).map(({ markdown }) => markdown)
    : [shown];
  const texts = await Promise.all(unsent.map((each) => shaper.shape(each, scene.capabilities.text)));
  const isBegun = blocks !== undefined && isContinued(shown, blocks.sent);
  if (isBegun) return planReply({ ...input, isBegun }, reply, texts.flat());
  const isReadable = texts.flat().some(({ text }) => !isInvisible(text));
  const leads = isReadable ? leadsOf(display, { parts: message.parts, lines: actions.lines }) : [];
  const joins = display.reasoning === 'on' && leads.length > 0;
  return planReply(input, reply, withLeads(leads, texts.flat(), { limits: scene.capabilities.text, joins }));
}

export type EndOutcome = {
  readonly outcome: Outcome;
  readonly outcomeReason: string;
  readonly parts: readonly Part[];
};

/** The cause of an end, and the part of the answer that people have seen. */
type RunEnd = {
  readonly stop: StopReason | undefined;
  readonly failure: ModelFailure | undefined;
  /** The part of its answer that people see. */
  readonly shown: FormattedText | undefined;
  /** Blocks of its answer were sent, which stay. */
  readonly isBegun?: boolean;
  readonly preview: LivePreview | undefined;
};

/**
 * Plans the end of a run without an answer. A run that a person stopped ends without a notice, and what they saw of its
 * answer stays, marked as stopped; any other run has a notice in place of its preview.
 */
export function planEnd(
  { reason }: Pick<Extract<AgentEvent, { type: 'agent_end' }>, 'reason'>,
  scene: AnswerScene,
  why: RunEnd,
): EndOutcome {
  const { target } = scene.run;
  const { preview } = why;
  if (why.stop !== undefined) {
    const mark = why.stop === 'stop' ? markOf(why, scene) : undefined;
    const plan = mark ? keepShown(mark, scene) : ({ kind: 'silent' } as const);
    const parts = answerParts(plan, { ...scene, target, preview });
    return { outcome: 'cancelled', outcomeReason: why.stop, parts };
  }
  const { run, ...rest } = scene;
  const notice = endNotice(reason, why.failure, scene.texts);
  const plan = shapeInternalFailure({ ...rest, ...run, route: routeOf(run.target) }, notice);
  return {
    outcome: 'failed',
    outcomeReason: why.failure?.kind === 'oversized' ? 'answer too large' : reason,
    parts: [
      ...answerParts({ kind: 'silent' }, { ...scene, target, preview }),
      ...answerParts(plan, { ...scene, target, preview: undefined }),
    ],
  };
}

/** Returns what tells that the answer was stopped: what people see of it, with a mark, or the mark behind its blocks. */
function markOf({ shown, isBegun }: RunEnd, { capabilities, texts }: AnswerScene): FormattedText | undefined {
  if (shown) return markStopped(shown, texts.answerStopped, capabilities.text);
  return isBegun ? plainText(texts.answerStopped) : undefined;
}

function keepShown(text: FormattedText, { run, replyToMode }: AnswerScene): ReplyPlan {
  const route = routeOf(run.target);
  if (route === undefined) return { kind: 'silent' };
  const content = { kind: 'text', text } as const;
  return { kind: 'send', parts: [{ route: previewRoute(route, replyToMode), content, purpose: 'reply' }] };
}

/** Returns the route of a preview, which quotes the message that an answer quotes unless the model names another. */
export function previewRoute(route: ReplyRoute, replyToMode: ReplyToMode): ReplyRoute {
  const bare = withoutQuote(route);
  const isQuoted = quotingParts(replyToMode, route) !== 'off' && route.replyTo !== undefined;
  return isQuoted ? { ...bare, replyTo: route.replyTo } : bare;
}

type AnswerPlace = {
  readonly target: RunTarget;
  readonly preview: LivePreview | undefined;
  readonly replyToMode: ReplyToMode;
};

/**
 * Returns the parts of an answer for the outbox. A shown preview becomes the first part, unless the answer is silent or
 * its first part can't be edited in place: then the preview is removed.
 */
export function answerParts(plan: ReplyPlan, { target, preview, replyToMode }: AnswerPlace): readonly Part[] {
  if (target === 'record') return [];
  const bare = withoutQuote(target);
  const removal = preview ? [removePreview(bare, preview)] : [];
  if (!('parts' in plan)) return removal;
  const { parts } = plan;
  const [first, ...rest] = parts;
  if (!preview || !first) return parts;
  // An edit can't change which message is quoted.
  const quotesTheSame = first.route.replyTo === previewRoute(target, replyToMode).replyTo;
  if (first.content.kind !== 'text' || !quotesTheSame) return [...removal, ...parts];
  const content: OutboundContent = {
    kind: 'edit',
    messageId: platformId(preview),
    text: first.content.text,
  };
  return [{ ...first, content }, ...rest];
}

function removePreview(route: ReplyRoute, preview: LivePreview): Part {
  return { route, content: { kind: 'delete', messageId: platformId(preview) }, purpose: 'notice' };
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
    case 'cancelled':
      return { outcome: 'silent', outcomeReason: `cancelled by the hook ${plan.by}: ${plan.reason}` };
    case 'suppressed':
      // A tool has answered.
      return { outcome: 'answered', outcomeReason: plan.reason };
    case 'fallback':
      return { outcome: 'failed', outcomeReason: plan.why };
    default:
      return plan satisfies never;
  }
}

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
