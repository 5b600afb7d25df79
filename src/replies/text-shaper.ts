/**
 * Turns a text into messages. Text that parses in a few milliseconds is shaped synchronously; a longer
 * one, or one full of signs, is parsed by the formatter and split in slices, so that nothing else waits for it.
 */
import { setImmediate as othersHadTheirTurn } from 'node:timers/promises';
import type { Capabilities } from '#contracts/capabilities.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import { chunkFormatted, chunksOf } from './chunk.ts';
import { formatMarkdown, isQuickToParse } from './markdown.ts';
import type { MarkdownFormatter } from './markdown-formatter.ts';

/** Formats Markdown and splits it into parts a network accepts. */
export interface TextShaper {
  /** Returns the text in pieces that the network accepts. Never throws or rejects; no word is lost. */
  shape(
    markdown: string,
    limits: Capabilities['text'],
  ): readonly FormattedText[] | Promise<readonly FormattedText[]>;
}

/** Creates the shaper; a text that can't be parsed in time stays plain. */
export function createTextShaper(formatter: Pick<MarkdownFormatter, 'format'>): TextShaper {
  return {
    shape: (markdown, limits) =>
      isQuickToParse(markdown)
        ? chunkFormatted(visible(formatMarkdown(markdown), markdown), limits)
        : formatter.format(markdown).then((formatted) => cutInSlices(visible(formatted, markdown), limits)),
  };
}

/** Shows markup around nothing, such as an empty code block, as written: nothing a model wrote may disappear. */
function visible(formatted: FormattedText, markdown: string): FormattedText {
  return isInvisible(formatted.text) ? plainText(markdown.trim()) : formatted;
}

async function cutInSlices(
  formatted: FormattedText,
  limits: Capabilities['text'],
): Promise<readonly FormattedText[]> {
  const chunks: FormattedText[] = [];
  for (const chunk of chunksOf(formatted, limits)) {
    chunks.push(chunk);
    // After each one: measuring it in a network's own markup takes up to 2 ms.
    await othersHadTheirTurn();
  }
  return chunks;
}

/** True if a text has only white space, controls, direction marks, joiners, fillers and broken characters. */
export function isInvisible(text: string): boolean {
  return !/[^\s\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufffd]/u.test(text);
}
