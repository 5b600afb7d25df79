/**
 * Converts the model's Markdown (CommonMark with GFM) to text and spans. HTML, definitions and footnotes
 * are shown as written, because nothing a model wrote may disappear. The parser is loaded for the first
 * text that contains markup.
 */
import { createRequire } from 'node:module';
import type { Root } from 'mdast';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { FormattedTextWriter } from './formatted-text-writer.ts';
import { hideLiterals } from './literal-text.ts';
import { writeBlocks } from './markdown-blocks.ts';

/** A text without any of these needs no parsing: it is shown unchanged, including its paragraph breaks. */
const MARKUP =
  /[*_~`#>[\]|\\&<!]|^[ \t]*(?:[-+]|\d{1,9}[.)])\s|https?:|www\.|@|\n[ \t]*(?:=+|-{2,})|^[ \t]*-{3,}|(?:^|\n)(?: {4}|\t)| {2}\n|\n{3,}/m;

/** Over this length (UTF-16 units) or nesting, markup is shown as written: the parser must not stall the gateway. */
export const LONGEST_PARSED = 100_000;
const TOO_DEEP = /[>*+[(!_~]{64,}|(?:(?:[>*+-]|\d{1,9}[.)])[ \t]+|>){64,}/;
/** Lines that repeat one character, which nest nothing. */
const RULES = /^[ \t]*([-*_=~])(?:[ \t]*\1)*[ \t]*$/gm;

/**
 * The parser takes up to quadratic time in characters that may be markup, and hardly any in plain words. While a
 * bracket is open, it looks back over the entire text at each word. Of 450 texts designed to be slow, each at the
 * limits of length and signs below, the worst takes 8.6 ms of CPU time, including the split into messages.
 */
const QUICK_LENGTH = 3_000;
const QUICK_LENGTH_WITH_BRACKETS = 1_500;
const QUICK_SIGNS = 200;

/** Says whether a text may be parsed on the event loop. Linear. */
export function isQuickToParse(markdown: string): boolean {
  const longest = markdown.includes('[') ? QUICK_LENGTH_WITH_BRACKETS : QUICK_LENGTH;
  if (markdown.length > longest) return false;
  return markdown.replace(/[\p{L}\p{N} ]+/gu, '').length <= QUICK_SIGNS;
}

/** Formats a text. Never throws: text that the parser can't handle is shown as written. */
export function formatMarkdown(markdown: string): FormattedText {
  const text = markdown.trim();
  if (!MARKUP.test(text) || text.length > LONGEST_PARSED) return plainText(text);
  try {
    const hidden = hideLiterals(markdown.trimEnd());
    if (TOO_DEEP.test(hidden.replace(RULES, ''))) return plainText(text);
    const writer = new FormattedTextWriter();
    writeBlocks(writer, parse(hidden).children);
    return writer.finish();
  } catch {
    // The nesting is too deep for the parser's recursion; the reader loses the formatting, not the answer.
    return plainText(text);
  }
}

function parse(markdown: string): Root {
  const { fromMarkdown, gfm, gfmFromMarkdown, cjkFriendlyExtension, gfmStrikethroughCjkFriendly } =
    loadParser();
  return fromMarkdown(markdown, {
    extensions: [
      gfm({ singleTilde: false }),
      // Without these, emphasis doesn't end between punctuation and a Chinese, Japanese or Korean character.
      cjkFriendlyExtension(),
      gfmStrikethroughCjkFriendly({ singleTilde: false }),
      {
        disable: { null: ['htmlFlow', 'htmlText', 'definition', 'gfmFootnoteCall', 'gfmFootnoteDefinition'] },
      },
    ],
    mdastExtensions: [gfmFromMarkdown()],
  });
}

/**
 * Loads the parser synchronously: about 70 ms once, then Node's module cache answers. The casts add the
 * types that `require` lacks.
 */
function loadParser() {
  const require = createRequire(import.meta.url);
  const { fromMarkdown } = require('mdast-util-from-markdown') as typeof import('mdast-util-from-markdown');
  const { gfm } = require('micromark-extension-gfm') as typeof import('micromark-extension-gfm');
  const { gfmFromMarkdown } = require('mdast-util-gfm') as typeof import('mdast-util-gfm');
  const { cjkFriendlyExtension } =
    require('micromark-extension-cjk-friendly') as typeof import('micromark-extension-cjk-friendly');
  const { gfmStrikethroughCjkFriendly } =
    require('micromark-extension-cjk-friendly-gfm-strikethrough') as typeof import('micromark-extension-cjk-friendly-gfm-strikethrough');
  return { fromMarkdown, gfm, gfmFromMarkdown, cjkFriendlyExtension, gfmStrikethroughCjkFriendly };
}
