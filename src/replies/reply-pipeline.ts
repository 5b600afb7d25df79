/**
 * Turns the final text of an answer into the parts to send, in the order of spec 9: sanitise, silence, dedupe,
 * fallback, shape, threading. Pure. Each answer is judged separately; tool sends are reset after it.
 */
import type { Capabilities } from '#contracts/capabilities.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { Source } from '#contracts/message.ts';
import { failedReaction, type OutboundContent } from '#contracts/outbound.ts';
import type { Part } from '#contracts/part.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';
import { confirmedSends, judgeRepeat, type ToolSend, withoutSentMedia } from './dedupe.ts';
import { captioned, mediaMessages } from './media-messages.ts';
import { sanitizeOutbound } from './scaffolding.ts';
import { judgeSilence, type Silence, type SilenceContext } from './silence.ts';
import { isInvisible } from './text-shaper.ts';

/** An answer before it is shaped for its channel. */
export type ReplyInput = {
  /** The final assistant text, as the model wrote it. */
  readonly text: string;
  /** The text reached its length limit. */
  readonly isCut?: boolean;
  /** Blocks of the answer were sent while it was written, so the parts only continue it. */
  readonly isBegun?: boolean;
  /** A preview is shown, which becomes the text. */
  readonly hasPreview?: boolean;
  /** Files that are sent with the answer, whatever happens to the text. */
  readonly media?: readonly ReplyMedia[];
  /** The tool of the run that failed last, if any did. */
  readonly toolFailure?: { readonly tool: string };
  readonly toolSends: readonly ToolSend[];
  /** Undefined when the answer is only recorded. */
  readonly route: ReplyRoute | undefined;
  readonly chatKind: 'dm' | 'group';
  readonly capabilities: Pick<Capabilities, 'text' | 'canReact'> &
    Partial<Pick<Capabilities, 'caption' | 'media' | 'isSessionBound'>>;
  readonly silenceContext: SilenceContext;
  readonly replyToMode: ReplyToMode;
  readonly texts: ChatTexts;
  /** Phrases that only say that something was sent. */
  readonly acknowledgements?: readonly string[];
};

/** `path`: in the media folder; `source`: the absolute path of the file that was copied. */
export type ReplyMedia = {
  readonly path: string;
  readonly source: string;
  readonly mimeType: string;
  readonly name: string;
  readonly sizeBytes?: number | undefined;
  readonly asVoice?: true | undefined;
};

/** Most files sent with one answer. */
const maxMedia = 10;

/** Which parts of an answer quote the message they answer. `queued`: the first, if the message is no longer the last. */
export type ReplyToMode = 'off' | 'queued' | 'first' | 'all';

/** The decision about an answer: nothing, or parts to send; an answer that is only recorded has none. */
export type ReplyPlan =
  /** The agent chose to send nothing. No fallback replaces this. */
  | { readonly kind: 'silent' }
  /** A hook has cancelled it. */
  | { readonly kind: 'cancelled'; readonly by: string; readonly reason: string }
  /** A tool has already said it. */
  | {
      readonly kind: 'suppressed';
      readonly reason: 'repeats' | 'acknowledges' | 'media-sent' | 'already-sent';
    }
  | { readonly kind: 'send'; readonly parts: readonly Part[]; readonly isCut?: true }
  /** The agent said nothing without choosing to be silent. */
  | { readonly kind: 'fallback'; readonly why: FallbackReason; readonly parts: readonly Part[] };

export type FallbackReason = 'tool failed' | 'empty answer' | 'cut off before an answer' | 'internal';

type Decision =
  | { readonly kind: 'text'; readonly text: string }
  | Extract<ReplyPlan, { kind: 'silent' | 'suppressed' }>;

/** The text to send, before formatting. */
export type DecidedReply = { readonly decided: Decision; readonly replyTag: string | undefined };

/** Decides what to say. The caller then turns the decided text into messages and passes them to `planReply`. */
export function decideReply(input: ReplyInput): DecidedReply {
  const { text, replyTag } = sanitizeOutbound(input.text);
  return { decided: decideText(text, input), replyTag };
}

/** Plans the parts. `texts`: the decided text as messages. */
export function planReply(
  input: ReplyInput,
  { decided, replyTag }: DecidedReply,
  texts: readonly FormattedText[],
): ReplyPlan {
  const media = withoutSentMedia(input.media ?? [], input.toolSends, input.route);
  const contents = contentsOf(
    input,
    texts.filter(({ text }) => !isInvisible(text)),
    media.slice(0, maxMedia),
  );
  if (contents.length > 0 || input.isBegun) {
    const threaded = threadParts(contents, { ...input, purpose: 'reply' }, replyTag);
    const parts = [...threaded, ...leftOutLine(input, media.length - maxMedia)];
    if (!input.isCut) return { kind: 'send', parts };
    return { kind: 'send', parts: [...parts, ...line(input, input.texts.answerCut)], isCut: true };
  }
  if (decided.kind !== 'text') return decided;
  return planNothingLeft(input);
}

/** The text is a caption where people are used to that; a client shows it as it was streamed, with the files below. */
function contentsOf(
  { capabilities, isBegun, hasPreview }: ReplyInput,
  texts: readonly FormattedText[],
  files: readonly ReplyMedia[],
): readonly OutboundContent[] {
  const media = mediaMessages(
    files.map(({ source: _, asVoice, ...file }) => ({ ...file, ...(asVoice && { asVoice }) })),
    capabilities.media,
  );
  const { caption, ...uncaptioned } = capabilities;
  const isOwn = isBegun || hasPreview || capabilities.isSessionBound;
  return captioned(texts, media, isOwn ? uncaptioned : capabilities);
}

/** Reports a failure of the run itself: a short line in a DM, a reaction in a group. `notice`: a more specific text. */
export function shapeInternalFailure(
  input: Pick<ReplyInput, 'route' | 'chatKind' | 'capabilities' | 'texts' | 'replyToMode'>,
  notice?: string,
): Extract<ReplyPlan, { kind: 'fallback' }> {
  const { chatKind, capabilities, texts, route } = input;
  const content: OutboundContent =
    chatKind === 'group' && capabilities.canReact && route?.replyTo !== undefined
      ? { kind: 'reaction', messageId: route.replyTo, emoji: failedReaction }
      : { kind: 'text', text: plainText(notice ?? texts.internalFailure) };
  return { kind: 'fallback', why: 'internal', parts: noticeParts(content, input) };
}

/** True if a person would see nothing of this answer although the agent hasn't chosen to be silent. */
export function isEmptyAnswer(text: string, context: SilenceContext): boolean {
  const silence = judgeWritten(text, context);
  return silence.kind === 'visible' && isInvisible(silence.text);
}

/** Returns the part of a finished answer that may be sent; empty if the agent has chosen to be silent. */
export function readableText(text: string, context: SilenceContext): string {
  const silence = judgeWritten(text, context);
  return silence.kind === 'visible' ? silence.text : '';
}

/** Judges a text as the model wrote it, after removing its scaffolding. */
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
    const text = plainText(fillText(input.texts.toolFailure, input.toolFailure));
    return { kind: 'fallback', why: 'tool failed', parts: noticeParts({ kind: 'text', text }, input) };
  }
  if (input.media?.length) return { kind: 'suppressed', reason: 'media-sent' };
  if (wasSent) return { kind: 'suppressed', reason: 'already-sent' };
  const { answerCutEmpty, answerEmpty } = input.texts;
  const { parts } = shapeInternalFailure(input, input.isCut ? answerCutEmpty : answerEmpty);
  return { kind: 'fallback', why: input.isCut ? 'cut off before an answer' : 'empty answer', parts };
}

function noticeParts(
  content: OutboundContent,
  place: Pick<ReplyInput, 'route' | 'replyToMode'>,
): readonly Part[] {
  return threadParts([content], { ...place, purpose: 'notice' });
}

function leftOutLine(input: ReplyInput, count: number): readonly Part[] {
  return count > 0 ? line(input, fillText(input.texts.filesLeftOut, { max: String(maxMedia) })) : [];
}

/** A line of Parley's own below an answer. */
function line({ route }: Pick<ReplyInput, 'route'>, text: string): readonly Part[] {
  const content: OutboundContent = { kind: 'text', text: plainText(text) };
  return noticeParts(content, { route, replyToMode: 'off' });
}

/** Returns which parts of an answer along this route quote the message that it answers. */
export function quotingParts(mode: ReplyToMode, route: ReplyRoute | undefined): 'off' | 'first' | 'all' {
  if (mode === 'queued') return route?.isBehind ? 'first' : 'off';
  return mode;
}

type ThreadInput = Pick<ReplyInput, 'route' | 'replyToMode' | 'isBegun'> & Pick<Part, 'purpose'>;

/** Decides which parts quote. An explicit reply tag overrides the mode; with `off` it applies to the first part. */
function threadParts(
  contents: readonly OutboundContent[],
  { route, replyToMode, purpose, isBegun }: ThreadInput,
  replyTag?: string,
): readonly Part[] {
  if (route === undefined) return [];
  const replyTo = replyTarget(route, replyTag);
  const bare = withoutQuote(route);
  const quoting = quotingParts(replyToMode, route);
  const mode = replyTag !== undefined && quoting === 'off' ? 'first' : quoting;
  return contents.map((content, index) => {
    const quotes = mode === 'all' || (mode === 'first' && index === 0 && !isBegun);
    const isQuote = quotes && replyTo !== undefined && content.kind !== 'reaction';
    return { route: isQuote ? { ...bare, replyTo } : bare, content, purpose };
  });
}

function replyTarget(route: ReplyRoute, replyTag?: string): MessageId | undefined {
  if (replyTag === undefined || replyTag === 'current') return route.replyTo;
  return messageId(replyTag);
}

// The sources of a search model's answer, as Markdown below it.

/** Returns the text with its sources, numbered as the text refers to them. They aren't repeated if it links them all. */
export function withSources(text: string, sources: readonly Source[]): string {
  if (sources.every(({ url }) => text.includes(url))) return text;
  const lines = sources.map(({ url, title }, index) => `${index + 1}. ${linkTo(url, title)}`);
  return `${text}\n\nSources:\n${lines.join('\n')}`;
}

function linkTo(url: string, title: string | undefined): string {
  const words = title?.replace(/[[\]\\`*_<>\s]+/g, ' ').trim();
  return words ? `[${words}](${url})` : url;
}
