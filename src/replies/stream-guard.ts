/**
 * Decides how much of a text that is still being written may be shown: never a prefix of a silent
 * token, never anything that the final decision (silence.ts) would remove, and natural text as soon
 * as it can be told apart from a token.
 */
import { sanitizeStreaming } from './sanitize.ts';
import { HEARTBEAT_REST_LIMIT, saysSomething, stripTails } from './silence.ts';
import { type SilenceContext, silenceGrammar } from './silence-grammar.ts';

/** Returns the part of an unfinished text that may be shown, whatever is written next. */
export function visibleWhileStreaming(written: string, context: SilenceContext): string {
  const text = sanitizeStreaming(written).trimStart();
  const begun = pastHeads(text, context);
  const visible = beforeTails(begun, context);
  if (!saysSomething(visible)) return '';
  if (context === 'heartbeat' && visible.length <= HEARTBEAT_REST_LIMIT) return '';
  return visible;
}

function pastHeads(text: string, context: SilenceContext): string {
  const { mayBecomeHead } = silenceGrammar(context);
  let rest = text;
  for (;;) {
    const current = rest;
    if (mayBecomeHead.some((form) => form.test(current))) return '';
    rest = withoutOneHead(current, context);
    if (rest === current) return rest;
  }
}

function withoutOneHead(text: string, context: SilenceContext): string {
  for (const form of silenceGrammar(context).head) {
    const match = form.exec(text)?.[0];
    if (match) return text.slice(match.length).trimStart();
  }
  return text;
}

/** Maximum length of an unfinished token at the end of a text: wrapping, token, wrapping. */
const LONGEST_TAIL = 48;
const MAY_PRECEDE_TAIL = /[\s.!?…)\]*~\u2e80-\u9fff\uac00-\ud7af\uff00-\uff19\uff1b-\uffef]/;

function beforeTails(text: string, context: SilenceContext): string {
  const { mayBecomeTail } = silenceGrammar(context);
  const trimmed = text.trimEnd();
  let visible = stripTails(trimmed, context);
  for (let start = trimmed.length - 1; start >= Math.max(0, trimmed.length - LONGEST_TAIL); start -= 1) {
    const isAtBoundary = start === 0 || MAY_PRECEDE_TAIL.test(trimmed.charAt(start - 1));
    if (!isAtBoundary || !mayBecomeTail.test(trimmed.slice(start))) continue;
    const kept = stripTails(trimmed.slice(0, start).trimEnd(), context);
    if (kept.length < visible.length) visible = kept;
  }
  return visible;
}
