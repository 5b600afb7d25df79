/**
 * Formats a growing text: finished blocks are parsed once, and only the text after the last of them again. Text
 * that would take the parser long is shown unformatted until the answer is complete, so each update stays
 * cheap.
 */
import type { FormattedText } from '#contracts/formatted-text.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { formatMarkdown, isQuickToParse } from './markdown.ts';

export interface GrowingMarkdown {
  /** `text`: what there is now; it begins with what there was. */
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

/** A line that goes on with no block above it, if an empty line parts the two. */
const BEGINS_ANEW = /^[\p{L}#]/u;
const FENCE = /^(`{3,}|~{3,})/;

/** Where the last block begins that may go on; as many blocks before it as can be parsed in one go. */
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
