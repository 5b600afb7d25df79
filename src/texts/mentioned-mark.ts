/** Blanks that are looked past to decide whether a sentence mentions a mark. */
const maxBlanks = 40;
/** How much of the text after a mark decides that, UTF-16 units. */
export const mentionLength = maxBlanks;

/**
 * Says whether a sentence mentions a mark such as `</think>`: in quotes, or as one of its words. `before`: the end of
 * the mark's line; `after`: the text that follows the mark, at least `mentionLength` of it, or as much as there is;
 * `wait`: more of it decides.
 */
export function isMentioned(
  { before, after }: { readonly before: string; readonly after: string },
  isFinal: boolean,
): boolean | 'wait' {
  if (after === '' && !isFinal) return 'wait';
  if (/["'“‘«([{`]$/.test(before) && /^["'”’»)\]}`]/.test(after)) return true;
  // The line ends with a word and a blank, so the mark may be the sentence's next word.
  if (!/[^\s.!?…:;"'”’)*\]}。！？][ \t]+$/.test(before)) return false;
  if (/^[.,;:!?)…、。，]/.test(after)) return true;
  const blanks = after.slice(0, maxBlanks);
  const next = blanks.replace(/^[ \t]+/, '');
  if (next === '' && !isFinal && blanks.length < maxBlanks) return 'wait';
  return next.length < blanks.length && /^[\p{Ll}\p{Lo}(]/u.test(next);
}
