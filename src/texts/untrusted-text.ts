// biome-ignore-all lint/suspicious/noControlCharactersInRegex: finding them is the purpose of this file

import { randomUUID } from 'node:crypto';
import type { Brand } from '#contracts/ids.ts';

/** Removes from strangers' text whatever a model could mistake for scaffolding. */
const LONGEST_LABEL = 64;
const DEEPEST_NESTING = 8;

const ROLE_TOKENS =
  /<\|(?:[\w▁-]+|[\w ▁-]{1,40})\|>|<｜(?:[\w▁-]+|[\w ▁-]{1,40})｜>|\[\/?INST\]|<<\/?SYS>>|<\/?(?:\w{1,12}:)?(?:system|assistant|user|human|developer|tool|system-reminder|instructions?|think|thinking|tool_call|tool_result|function_calls?|function_results?|invoke|parameter)\b[^<>]{0,200}>/gi;

/** Removes controls, role tokens and imitated boundaries from a stranger's text. Safe to repeat. */
export function cleanUntrusted(text: string): string {
  let clean = stripControls(text);
  // Removing one token may join two halves of another; text that nests them deeper loses every bracket.
  for (let pass = 0; clean.search(ROLE_TOKENS) !== -1; pass += 1) {
    clean = pass < DEEPEST_NESTING ? clean.replace(ROLE_TOKENS, '') : clean.replace(/[<[]/g, '‹');
  }
  return clean.replace(/[<＜﹤]{3,}/g, '‹‹‹').replace(/[>＞﹥]{3,}/g, '›››');
}

/** Cleans the name of a person or a file: one short line without anything that could end a label. */
export function cleanLabel(name: string): string {
  const label = cleanUntrusted(name)
    .replace(/[\s\u00b7]+/g, ' ')
    .replace(/[[\]<>"]/g, '')
    .trim();
  const characters = [...label];
  return characters.length > LONGEST_LABEL ? `${characters.slice(0, LONGEST_LABEL - 1).join('')}…` : label;
}

/**
 * Removes characters that a reader can't see but a terminal, a log or a layout would obey: control characters,
 * ANSI and OSC sequences, bidi overrides and isolates, invisible characters. Keeps the joiners that
 * emoji and joining scripts need, and plain direction marks.
 */

const SUSPECT =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u180e\u200b-\u200d\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/;

const STRING_SEQUENCE = /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?/g;
const CONTROL_SEQUENCE = /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?/g;
const OTHER_SEQUENCE = /\x1b[ -/]*[0-~]?/g;
const CONTROLS =
  /[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const LINE_ENDS = /\r\n?|[\u2028\u2029]/g;

const FLAG_WITH_TAGS = /(\u{1f3f4}[\u{e0020}-\u{e007e}]{1,8}\u{e007f})|[\u{e0000}-\u{e007f}]/gu;
const IDEOGRAPH_VARIANT = /(\p{sc=Han}[\u{e0100}-\u{e01ef}])|[\u{e0100}-\u{e01ef}]/gu;
/** A joiner is kept after an emoji, and after a letter of a script that joins its letters. */
const KEPT_JOINER =
  /^(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f|(?![\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{sc=Han}])[\p{L}\p{M}])$/u;

/** A string sequence; the group matches when nothing has ended it. It consumes each character once, however many begin one. */
const BEGUN_SEQUENCE = /(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:(\x1b?$)|)/g;
/** An end of text that the next characters may turn into something that is removed or joined. */
const UNFINISHED =
  /(?:\r|[\ud800-\udbff]|(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b[ -/]*|\ud83c\udff4(?:\udb40[\udc20-\udc7e])*)$/;

/** Strips the controls. Safe to repeat. U+0000 and lone surrogates become U+FFFD; line ends become `\n`. */
export function stripControls(text: string): string {
  if (!SUSPECT.test(text)) return text;
  return stripJoiners(
    text
      .toWellFormed()
      .replaceAll('\u0000', '\ufffd')
      .replace(STRING_SEQUENCE, '')
      .replace(CONTROL_SEQUENCE, '')
      .replace(OTHER_SEQUENCE, '')
      .replace(LINE_ENDS, '\n')
      .replace(CONTROLS, '')
      .replace(FLAG_WITH_TAGS, '$1')
      .replace(IDEOGRAPH_VARIANT, '$1'),
  );
}

/** Strips the controls of a text that is still growing, leaving out its unfinished end. */
export function stripControlsStreaming(text: string): string {
  const whole = text.replace(BEGUN_SEQUENCE, (begun, open?: string) => (open === undefined ? begun : ''));
  return stripControls(whole.replace(UNFINISHED, ''));
}

function stripJoiners(text: string): string {
  if (!/[\u200c\u200d]/.test(text)) return text;
  let kept = '';
  let previous = '';
  for (const char of text) {
    const isJoiner = char === '\u200c' || char === '\u200d';
    if (isJoiner && !KEPT_JOINER.test(previous)) continue;
    kept += char;
    previous = char;
  }
  return kept;
}

// Encloses strangers' text, which is data, between two lines with a random boundary.

/** A random delimiter, so that no text can contain it on purpose. */
export type Delimiter = Brand<'Boundary'>;

/** Makes a delimiter of 122 random bits, so that no author can forge the end of the enclosure. */
export function newDelimiter(): Delimiter {
  return randomUUID().replaceAll('-', '') as Delimiter;
}

/** Encloses the text. `about` says what it is and from whom; it is cleaned too. */
export function wrapUntrusted(text: string, about: string, boundary: Delimiter): string {
  const body = cleanUntrusted(text).replaceAll(boundary, '·');
  const label = cleanLabel(about).replaceAll(boundary, '·');
  return `${untrustedBegin(label, boundary)}\n${body}\n${untrustedEnd(boundary)}`;
}

/** Returns the line before the text. The label must be clean. */
export function untrustedBegin(label: string, boundary: Delimiter): string {
  return `<<<untrusted ${boundary} ${label}>>>`;
}

/** Returns the line after the text. */
export function untrustedEnd(boundary: Delimiter): string {
  return `<<<end untrusted ${boundary}>>>`;
}
