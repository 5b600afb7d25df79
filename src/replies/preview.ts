/**
 * Decides what a live preview shows while an answer is written: what may be shown of the text, or,
 * while tools work, one progress line per call. Pure of time and network; the final edit wins.
 */
import type { Capabilities } from '#contracts/capabilities.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { chunkFormatted, nativeLength } from './chunk.ts';
import { formatMarkdown } from './markdown.ts';
import type { SilenceContext } from './silence-grammar.ts';
import { visibleWhileStreaming } from './stream-guard.ts';

export interface PreviewText {
  push(delta: string): void;
  /** The text so far stood beside a tool call and is no answer: it shrinks to a progress line. */
  toolStarted(name: string): void;
  /** A new answer begins. */
  reset(): void;
  /** What to show now; undefined while nothing may be shown. Computed when asked, so ask when due. */
  now(): FormattedText | undefined;
}

const PROGRESS_LINES = 3;
const PROGRESS_LENGTH = 80;
const ELLIPSIS = '…';

export function createPreviewText(options: {
  readonly context: SilenceContext;
  readonly capabilities: Pick<Capabilities, 'text'>;
}): PreviewText {
  const { context, capabilities } = options;
  let written = '';
  let progress: readonly string[] = [];
  return {
    push(delta) {
      written += delta;
    },
    toolStarted(name) {
      const said = oneLine(visibleWhileStreaming(written, context));
      progress = [...progress, said === '' ? `⚙ ${name}` : `⚙ ${name}: ${said}`].slice(-PROGRESS_LINES);
      written = '';
    },
    reset() {
      written = '';
      progress = [];
    },
    now() {
      const visible = visibleWhileStreaming(written, context);
      if (visible !== '') return headOf(formatMarkdown(visible), capabilities.text);
      return progress.length > 0 ? headOf(plainText(progress.join('\n')), capabilities.text) : undefined;
    },
  };
}

/** When the next edit may go out, ms since the epoch. */
export function nextEditAt(lastEditAt: number | undefined, intervalMs: number): number {
  return lastEditAt === undefined ? 0 : lastEditAt + intervalMs;
}

/** A text longer than one message shows its beginning: the final answer's first part will stand there. */
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
