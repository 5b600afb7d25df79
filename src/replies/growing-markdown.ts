/**
 * Formats a growing text. Finished blocks are parsed once and only the text after them is parsed again. Text that
 * would take the parser long is shown unformatted until the answer is complete, so each update stays cheap.
 */
import type { FormattedText } from '#contracts/formatted-text.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { formatMarkdown, isQuickToParse } from './markdown.ts';

export interface GrowingMarkdown {
  /** Formats the text so far. `text` begins with the previous one. */
  format(text: string): FormattedText;
}

export function createGrowingMarkdown(): GrowingMarkdown {
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
  const text = `${first.text}\n\n`;
  const moved = then.spans.map((span) => ({ ...span, start: span.start + text.length }));
  return { text: text + then.text, spans: [...first.spans, ...moved] };
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
