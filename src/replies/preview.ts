/**
 * Decides what a live preview shows while an answer is written: the part of the text that may be shown, or
 * one progress line per call while tools run. It uses no clock and no network. The final edit replaces it.
 */
import type { Capabilities } from '#contracts/capabilities.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import { joinTexts, quoteNewest, summaryOf } from './answer-leads.ts';
import { chunkFormatted, nativeLength } from './chunk.ts';
import { formatMarkdown, isQuickToParse } from './markdown.ts';
import { sanitizeStreaming } from './scaffolding.ts';
import {
  isShortHeartbeat,
  type SilenceContext,
  saysSomething,
  silenceGrammar,
  stripTails,
} from './silence.ts';

/** The visible text of an answer that is still being written. */
export interface PreviewText {
  push(delta: string): void;
  /** Adds reasoning, which is shown until there is an answer. */
  think(delta: string): void;
  /** Shows these lines about finished calls, instead of the names of those that have started. */
  showLines(lines: readonly string[]): void;
  /** The text so far accompanied a tool call and isn't an answer, so it shrinks to a progress line. */
  toolStarted(name: string): void;
  /** Starts a new answer. */
  reset(): void;
  /** Returns the text to show now; undefined while nothing may be shown. Computed on each call, so call it when due. */
  now(): FormattedText | undefined;
  /** Says whether `now` is part of an answer, not progress lines. */
  isAnswer(): boolean;
}

const PROGRESS_LINES = 3;
const PROGRESS_LENGTH = 80;
const ELLIPSIS = '…';
/** Over this length (UTF-16 units) a text is judged again only once it has grown by 1/32, so the total stays linear. */
const LOOKED_AT_ALWAYS = 2_048;

/** Says whether a growing text last judged at one length should be judged again at another, UTF-16 units. */
export function shouldJudgeAgain(judgedLength: number, length: number): boolean {
  return length - judgedLength > (judgedLength < LOOKED_AT_ALWAYS ? 0 : judgedLength >> 5);
}

/** Creates the preview of one answer. */
export function createPreviewText(options: {
  readonly context: SilenceContext;
  readonly capabilities: Pick<Capabilities, 'text'>;
}): PreviewText {
  const { context, capabilities } = options;
  let progress: readonly string[] = [];
  let lines: readonly string[] | undefined;
  let thoughts = '';
  let answer = createAnswerHead(context, capabilities.text);
  return {
    push: (delta) => answer.push(delta),
    think(delta) {
      thoughts += delta;
    },
    showLines(shown) {
      lines = shown;
    },
    toolStarted(name) {
      thoughts = '';
      const said = oneLine(answer.visible());
      progress = [...progress, said === '' ? `⚙ ${name}` : `⚙ ${name}: ${said}`].slice(-PROGRESS_LINES);
      answer = createAnswerHead(context, capabilities.text);
    },
    reset() {
      progress = [];
      thoughts = '';
      answer = createAnswerHead(context, capabilities.text);
    },
    now() {
      const head = answer.head();
      const summary = lines && summaryOf(lines);
      if (head !== undefined) return summary ? headOf(joinTexts(summary, head), capabilities.text) : head;
      const steps = summary ?? (progress.length > 0 ? plainText(progress.join('\n')) : undefined);
      const quoted = quoteNewest(thoughts);
      const shown = steps && quoted ? joinTexts(steps, quoted) : (steps ?? quoted);
      return shown && headOf(shown, capabilities.text);
    },
    isAnswer: () => answer.head() !== undefined,
  };
}

/** Tracks the first message of an answer while it is written; `head` is undefined while nothing may be shown. */
function createAnswerHead(context: SilenceContext, limits: Capabilities['text']) {
  const markdown = createGrowingMarkdown();
  let written = '';
  let judgedLength = 0;
  let isFull = false;
  let head: FormattedText | undefined;
  let longest = '';
  // Keeps the longest, because words that may become a tag briefly shrink the visible text.
  const visible = () => {
    const text = visibleWhileStreaming(written, context);
    if (text.length > longest.length) longest = text;
    return longest;
  };
  return {
    visible,
    push: (delta: string) => {
      written += delta;
    },
    head: () => {
      if (isFull || !shouldJudgeAgain(judgedLength, written.length)) return head;
      judgedLength = written.length;
      const text = visible();
      // Twice a message's length is enough to know how the first one ends.
      isFull = text.length > 2 * limits.maxLength;
      if (text !== '') head = headOf(markdown.format(text.slice(0, 2 * limits.maxLength)), limits);
      return head;
    },
  };
}

/** Returns a shown text with `mark` below it, as one message. */
export function markStopped(shown: FormattedText, mark: string, limits: Capabilities['text']): FormattedText {
  const below = `\n\n${mark}`;
  const marked = { text: shown.text + below, spans: shown.spans };
  if (nativeLength(marked, limits) <= limits.maxLength) return marked;
  const maxLength = limits.maxLength - below.length - ELLIPSIS.length;
  const head = chunkFormatted(shown, { ...limits, maxLength })[0] ?? plainText('');
  return { text: head.text + ELLIPSIS + below, spans: head.spans };
}

/** Returns the beginning of a text longer than one message; the final answer's first part replaces it. */
function headOf(formatted: FormattedText, limits: Capabilities['text']): FormattedText | undefined {
  const { maxLength } = limits;
  if (nativeLength(formatted, limits) <= maxLength) return formatted.text === '' ? undefined : formatted;
  const head = chunkFormatted(formatted, { ...limits, maxLength: maxLength - ELLIPSIS.length })[0];
  return head && { text: head.text + ELLIPSIS, spans: head.spans };
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > PROGRESS_LENGTH
    ? `${line.slice(0, PROGRESS_LENGTH - 1).toWellFormed()}${ELLIPSIS}`
    : line;
}

/**
 * Formats a growing text. Finished blocks are parsed once and only the text after them is parsed again. Text that
 * would take the parser long is shown unformatted until the answer is complete, so each update stays cheap.
 */
interface GrowingMarkdown {
  /** Formats the text so far. `text` begins with the previous one. */
  format(text: string): FormattedText;
}

function createGrowingMarkdown(): GrowingMarkdown {
  let settled = '';
  let shown: FormattedText = plainText('');
  return {
    format: (text) => {
      if (!text.startsWith(settled)) {
        settled = '';
        shown = plainText('');
      }
      const end = settled.length + endOfBlocks(text.slice(settled.length));
      if (end > settled.length) {
        shown = join(shown, formatQuickly(text.slice(settled.length, end)));
        settled = text.slice(0, end);
      }
      return join(shown, formatQuickly(text.slice(end)));
    },
  };
}

function formatQuickly(markdown: string): FormattedText {
  return isQuickToParse(markdown) ? formatMarkdown(markdown) : plainText(markdown.trim());
}

function join(first: FormattedText, then: FormattedText): FormattedText {
  if (first.text === '' || then.text === '') return first.text === '' ? then : first;
  return joinTexts(first, then);
}

/** A line that doesn't continue the block above it if there is an empty line between them. */
const BEGINS_ANEW = /^[\p{L}#]/u;
const FENCE = /^(`{3,}|~{3,})/;

/** Returns where the last, unfinished block begins, or an earlier one if the blocks before it are too long to parse. */
function endOfBlocks(text: string): number {
  let end = 0;
  let fence: string | undefined;
  let isEmptyBefore = false;
  for (const { 0: line, index } of text.matchAll(/[^\n]*\n|[^\n]+$/g)) {
    const marker = FENCE.exec(line)?.[1];
    if (fence === undefined && isEmptyBefore && BEGINS_ANEW.test(line)) {
      if (end > 0 && !isQuickToParse(text.slice(0, index))) return end;
      end = index;
    }
    if (fence === undefined) fence = marker;
    else if (marker?.startsWith(fence) && line.trim() === marker) fence = undefined;
    isEmptyBefore = line.trim() === '';
  }
  return end;
}

// Decides how much of a text that is still being written may be shown: never a prefix of a silent token, never
// anything that the final decision (silence.ts) would remove, and natural text as soon as it can be told apart from a
// token.

/** Returns the part of an unfinished text that may be shown, whatever is written next. */
export function visibleWhileStreaming(written: string, context: SilenceContext): string {
  const text = sanitizeStreaming(written).trimStart();
  const begun = pastHeads(text, context);
  const visible = beforeTails(begun, context);
  if (!saysSomething(visible)) return '';
  return isShortHeartbeat(visible, context) ? '' : visible;
}

function pastHeads(text: string, context: SilenceContext): string {
  const { mayBecomeHead } = silenceGrammar(context);
  let rest = text;
  for (;;) {
    const current = rest;
    if (mayBecomeHead.some((form) => form.test(current))) return '';
    rest = withoutOneHead(current, context);
    if (rest === current) return rest;
  }
}

function withoutOneHead(text: string, context: SilenceContext): string {
  for (const form of silenceGrammar(context).head) {
    const match = form.exec(text)?.[0];
    if (match) return text.slice(match.length).trimStart();
  }
  return text;
}

/** Maximum length of an unfinished token at the end of a text: wrapping, token, wrapping. */
const LONGEST_TAIL = 48;
const MAY_PRECEDE_TAIL = /[\s.!?…)\]*~\u2e80-\u9fff\uac00-\ud7af\uff00-\uff19\uff1b-\uffef]/;

function beforeTails(text: string, context: SilenceContext): string {
  const { mayBecomeTail } = silenceGrammar(context);
  const trimmed = text.trimEnd();
  let visible = stripTails(trimmed, context);
  for (let start = trimmed.length - 1; start >= Math.max(0, trimmed.length - LONGEST_TAIL); start -= 1) {
    const isAtBoundary = start === 0 || MAY_PRECEDE_TAIL.test(trimmed.charAt(start - 1));
    if (!isAtBoundary || !mayBecomeTail.test(trimmed.slice(start))) continue;
    const kept = stripTails(trimmed.slice(0, start).trimEnd(), context);
    if (kept.length < visible.length) visible = kept;
  }
  return visible;
}
