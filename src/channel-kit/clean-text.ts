/** Replaces U+0000 and lone surrogates, which break databases and JSON readers, with U+FFFD. Keeps the length. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\ufffd');
}

/** Returns a file's name as one line, without characters that act instead of being displayed; at most 255 units. */
export function cleanFileName(name: string): string {
  const shown = name
    .slice(0, 1_000)
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
    .trim();
  return shown.slice(0, 255).toWellFormed() || 'file';
}

/** True for white space only, including separators and U+0085, which some platforms count as white space. */
export function isBlank(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose
  return /^[\s\x1c-\x1f\x85]*$/.test(text);
}

/**
 * Returns the text if it fits into `maxBytes` of UTF-8, otherwise its longest beginning that fits together with
 * a note about the rest. Never splits a surrogate pair. The result is clean (see `cleanText`).
 */
export function fitBytes(text: string, maxBytes: number): string {
  // A UTF-16 unit is at least one byte, so nothing after `maxBytes` units can fit; 2 spare units keep a pair intact.
  const cleaned = cleanText(text.slice(0, maxBytes + 2));
  if (text.length <= maxBytes && Buffer.byteLength(cleaned) <= maxBytes) return cleaned;
  const note = `\n[cut here: the whole text has ${Buffer.byteLength(text)} bytes, the limit is ${maxBytes}]`;
  const room = new Uint8Array(maxBytes - Buffer.byteLength(note));
  return cleaned.slice(0, new TextEncoder().encodeInto(cleaned, room).read) + note;
}

/** Does the same for a limit in characters (UTF-16 units). */
export function fitChars(text: string, maxChars: number): string {
  if (text.length <= maxChars) return cleanText(text);
  const note = `\n[cut here: only the first ${maxChars} characters are shown]`;
  const end = maxChars - note.length;
  const head = text.slice(0, isPairSplitAt(text, end) ? end - 1 : end);
  return cleanText(head) + note;
}

function isPairSplitAt(text: string, index: number): boolean {
  const unit = text.charCodeAt(index - 1);
  return unit >= 0xd800 && unit <= 0xdbff;
}
