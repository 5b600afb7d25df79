/**
 * Decides what a live preview shows while an answer is written: the part of the text that may be shown, or
 * one progress line per call while tools run. It uses no clock and no network. The final edit replaces it.
 */
import type { Capabilities } from '#contracts/capabilities.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { chunkFormatted, nativeLength } from './chunk.ts';
import { createGrowingMarkdown } from './growing-markdown.ts';
import type { SilenceContext } from './silence-grammar.ts';
import { visibleWhileStreaming } from './stream-guard.ts';

/** The visible text of an answer that is still being written. */
export interface PreviewText {
  push(delta: string): void;
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
  let answer = createAnswerHead(context, capabilities.text);
  return {
    push: (delta) => answer.push(delta),
    toolStarted(name) {
      const said = oneLine(answer.visible());
      progress = [...progress, said === '' ? `⚙ ${name}` : `⚙ ${name}: ${said}`].slice(-PROGRESS_LINES);
      answer = createAnswerHead(context, capabilities.text);
    },
    reset() {
      progress = [];
      answer = createAnswerHead(context, capabilities.text);
    },
    now() {
      const head = answer.head();
      if (head !== undefined) return head;
      return progress.length > 0 ? headOf(plainText(progress.join('\n')), capabilities.text) : undefined;
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
