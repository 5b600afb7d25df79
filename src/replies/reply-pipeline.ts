/**
 * From the final text of an answer to what is sent, in the order of spec 9: sanitise, silence, dedupe,
 * fallback, shape, threading. Pure. Judged per answer: tool sends start anew after each.
 */
import type { Capabilities } from '#contracts/capabilities.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import type { MessageId } from '#contracts/ids.ts';
import { messageId } from '#contracts/ids.ts';
import { failedReaction, type OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { fillNotice, type Notices } from '../texts/notices.ts';
import { confirmedSends, judgeRepeat, type ToolSend, withoutSentMedia } from './dedupe.ts';
import { isInvisible } from './invisible.ts';
import { sanitizeOutbound } from './sanitize.ts';
import { judgeSilence, type Silence } from './silence.ts';
import type { SilenceContext } from './silence-grammar.ts';

/** An answer before it is shaped for its channel. */
export type ReplyInput = {
  /** The final assistant text, as the model wrote it. */
  readonly text: string;
  /** It reached its length limit. */
  readonly isCut?: boolean;
  /** Files that go out with the answer, whatever becomes of the text. */
  readonly media?: readonly ReplyMedia[];
  /** The last tool of the run that failed, if one did. */
  readonly toolFailure?: { readonly tool: string };
  readonly toolSends: readonly ToolSend[];
  /** Undefined when the answer is only on record. */
  readonly route: ReplyRoute | undefined;
  readonly chatKind: 'dm' | 'group';
  readonly capabilities: Pick<Capabilities, 'text' | 'canReact'>;
  readonly silenceContext: SilenceContext;
  readonly replyToMode: ReplyToMode;
  readonly notices: Notices;
  /** Phrases that only say that something was sent. */
  readonly acknowledgements?: readonly string[];
};

export type ReplyMedia = { readonly path: string; readonly mimeType: string; readonly name: string };

/** Which parts of an answer quote the message they answer. */
export type ReplyToMode = 'off' | 'first' | 'all';

export type ReplyPart = {
  readonly content: OutboundContent;
  readonly replyTo?: MessageId;
  /** Parley says it, not the agent. */
  readonly isNotice?: true;
};

/** The decision about an answer: nothing, or parts to send. */
export type ReplyPlan =
  /** The agent chose to send nothing. Never replaced by anything. */
  | { readonly kind: 'silent' }
  /** A tool has said it already. */
  | {
      readonly kind: 'suppressed';
      readonly reason: 'repeats' | 'acknowledges' | 'media-sent' | 'already-sent';
    }
  | { readonly kind: 'send'; readonly parts: readonly ReplyPart[]; readonly isCut?: true }
  /** The agent has said nothing, and has not chosen to. */
  | { readonly kind: 'fallback'; readonly why: FallbackReason; readonly parts: readonly ReplyPart[] };

export type FallbackReason = 'tool failed' | 'empty answer' | 'cut off before an answer' | 'internal';

type Decision =
  | { readonly kind: 'text'; readonly text: string }
  | Extract<ReplyPlan, { kind: 'silent' | 'suppressed' }>;

/** The text to send, before formatting. */
export type DecidedReply = { readonly decided: Decision; readonly replyTag: string | undefined };

/** The first half: the caller turns the decided text into messages and passes them to `planReply`. */
export function decideReply(input: ReplyInput): DecidedReply {
  const { text, replyTag } = sanitizeOutbound(input.text);
  return { decided: decideText(text, input), replyTag };
}

/** The second half. `texts`: the decided text as messages. */
export function planReply(
  input: ReplyInput,
  { decided, replyTag }: DecidedReply,
  texts: readonly FormattedText[],
): ReplyPlan {
  const media = withoutSentMedia(input.media ?? [], input.toolSends, input.route);
  const contents = [
    ...texts.map((text): OutboundContent => ({ kind: 'text', text })).filter(isVisible),
    ...media.map((file): OutboundContent => ({ kind: 'media', ...file })),
  ];
  if (contents.length > 0) {
    const parts = threadParts(contents, input, replyTag);
    if (!input.isCut) return { kind: 'send', parts };
    return { kind: 'send', parts: [...parts, cutLine(input.notices)], isCut: true };
  }
  if (decided.kind !== 'text') return decided;
  return planNothingLeft(input);
}

/** A failure of the run itself: one short line in a DM, a reaction in a group. `notice` says how, if more is known. */
export function shapeInternalFailure(
  input: Pick<ReplyInput, 'route' | 'chatKind' | 'capabilities' | 'notices' | 'replyToMode'>,
  notice?: string,
): Extract<ReplyPlan, { kind: 'fallback' }> {
  const { chatKind, capabilities, notices, route } = input;
  const content: OutboundContent =
    chatKind === 'group' && capabilities.canReact && route?.replyTo !== undefined
      ? { kind: 'reaction', messageId: route.replyTo, emoji: failedReaction }
      : { kind: 'text', text: plainText(notice ?? notices.internalFailure) };
  return { kind: 'fallback', why: 'internal', parts: threadParts([content], input) };
}

/** Whether a person would see nothing of this answer, though the agent has not chosen to be silent. */
export function isEmptyAnswer(text: string, context: SilenceContext): boolean {
  const silence = judgeWritten(text, context);
  return silence.kind === 'visible' && isInvisible(silence.text);
}

/** The part of a finished answer that may be sent; empty when the agent has chosen to be silent. */
export function readableText(text: string, context: SilenceContext): string {
  const silence = judgeWritten(text, context);
  return silence.kind === 'visible' ? silence.text : '';
}

/** Judges a text as the model wrote it, once its scaffolding is gone. */
export function judgeWritten(text: string, context: SilenceContext): Silence {
  return judgeSilence(sanitizeOutbound(text).text, context);
}

function decideText(text: string, input: ReplyInput): Decision {
  const silence = judgeSilence(text, input.silenceContext);
  if (silence.kind === 'silent') return silence;
  const repeat = judgeRepeat(silence.text, input.toolSends, input);
  if (repeat !== 'new') return { kind: 'suppressed', reason: repeat };
  return { kind: 'text', text: silence.text };
}

function planNothingLeft(input: ReplyInput): ReplyPlan {
  const wasSent = confirmedSends(input.toolSends, input.route).length > 0;
  if (input.toolFailure && !wasSent) {
    const text = plainText(fillNotice(input.notices.toolFailure, input.toolFailure));
    return { kind: 'fallback', why: 'tool failed', parts: threadParts([{ kind: 'text', text }], input) };
  }
  if (input.media?.length) return { kind: 'suppressed', reason: 'media-sent' };
  if (wasSent) return { kind: 'suppressed', reason: 'already-sent' };
  const { answerCutEmpty, answerEmpty } = input.notices;
  const { parts } = shapeInternalFailure(input, input.isCut ? answerCutEmpty : answerEmpty);
  return { kind: 'fallback', why: input.isCut ? 'cut off before an answer' : 'empty answer', parts };
}

function isVisible(content: OutboundContent): boolean {
  return content.kind !== 'text' || !isInvisible(content.text.text);
}

function cutLine({ answerCut }: Notices): ReplyPart {
  return { content: { kind: 'text', text: plainText(answerCut) }, isNotice: true };
}

/** An explicit reply tag wins over the mode; with mode `off` it counts for the first part. */
function threadParts(
  contents: readonly OutboundContent[],
  input: Pick<ReplyInput, 'route' | 'replyToMode'>,
  replyTag?: string,
): readonly ReplyPart[] {
  const target = replyTarget(input, replyTag);
  const mode = replyTag !== undefined && input.replyToMode === 'off' ? 'first' : input.replyToMode;
  return contents.map((content, index) => {
    const quotes = mode === 'all' || (mode === 'first' && index === 0);
    return quotes && target !== undefined && content.kind !== 'reaction'
      ? { content, replyTo: target }
      : { content };
  });
}

function replyTarget({ route }: Pick<ReplyInput, 'route'>, replyTag?: string): MessageId | undefined {
  if (replyTag === undefined || replyTag === 'current') return route?.replyTo;
  return messageId(replyTag);
}
