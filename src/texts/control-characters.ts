// biome-ignore-all lint/suspicious/noControlCharactersInRegex: finding them is the purpose of this file
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
