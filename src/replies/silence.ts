/**
 * Decides "answer or stay silent". The rules, in order (spec 9.1):
 * if the entire text is a silent token (in any case, however wrapped) or the JSON `{"action": token}`, it is
 * silent; a token at an edge of other text is stripped and the rest is sent; a token in the middle, quoted on
 * a line with other words, or followed by `:` and text, is ordinary text.
 */
import { type SilenceContext, silenceGrammar } from './silence-grammar.ts';

export type Silence =
  | { readonly kind: 'silent' }
  /** `text` is trimmed; empty only when nothing was written at all. */
  | { readonly kind: 'visible'; readonly text: string };

/** A heartbeat that says OK and at most this many UTF-16 units besides is silent. */
export const HEARTBEAT_REST_LIMIT = 300;

/** A letter, a digit or a pictograph; without one, the text next to a token is only its punctuation. */
const SAYS_SOMETHING = /[\p{L}\p{N}\p{Extended_Pictographic}\p{So}]/u;

/** Decides by the rules above. Takes time linear in the text's length. */
export function judgeSilence(text: string, context: SilenceContext): Silence {
  const written = text.trim();
  const { rest, isSilent } = stripHeads(written, context);
  if (isSilent) return { kind: 'silent' };
  const visible = stripTails(rest, context);
  if (visible === written) return { kind: 'visible', text: visible };
  if (!saysSomething(visible)) return { kind: 'silent' };
  if (context === 'heartbeat' && visible.length <= HEARTBEAT_REST_LIMIT) return { kind: 'silent' };
  return { kind: 'visible', text: visible };
}

/** Removes every token from the beginning of a trimmed text. */
function stripHeads(
  text: string,
  context: SilenceContext,
): { readonly rest: string; readonly isSilent: boolean } {
  const { head, whole } = silenceGrammar(context);
  let rest = text;
  for (;;) {
    const current = rest;
    if (whole.some((form) => form.test(current))) return { rest: '', isSilent: true };
    const match = firstMatch(head, current);
    if (!match) return { rest: current, isSilent: false };
    rest = current.slice(match.length).trimStart();
    if (rest === '') return { rest, isSilent: true };
  }
}

/** Removes every token from the end of a trimmed text. */
export function stripTails(text: string, context: SilenceContext): string {
  let rest = text;
  for (;;) {
    const start = tailStart(rest, context);
    if (start === undefined) return rest;
    rest = rest.slice(0, start).trimEnd();
  }
}

/** No token with its wrapping is this long; searching more would reread the entire text for each token. */
const LONGEST_TAIL = 64;

/** Returns where the token at the end of a text begins. */
function tailStart(text: string, context: SilenceContext): number | undefined {
  const { tail, lineTail } = silenceGrammar(context);
  const end = text.slice(-LONGEST_TAIL);
  const at = lineTail.exec(end)?.index;
  if (at !== undefined && isLineStart(text, text.length - end.length + at))
    return text.length - end.length + at;
  const found = tail.exec(end);
  return found?.[0] ? text.length - end.length + found.index : undefined;
}

/** True if there are only blanks before `index` on its line. */
function isLineStart(text: string, index: number): boolean {
  let before = index;
  while (before > 0 && ' \t'.includes(text.charAt(before - 1))) before -= 1;
  return before === 0 || text.charAt(before - 1) === '\n';
}

export function saysSomething(text: string): boolean {
  return SAYS_SOMETHING.test(text);
}

function firstMatch(forms: readonly RegExp[], text: string): string | undefined {
  for (const form of forms) {
    const match = form.exec(text)?.[0];
    if (match) return match;
  }
  return undefined;
}
