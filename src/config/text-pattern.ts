import { RE2JS } from 're2js';

/** An operator's pattern, matched in time linear in the text, whatever the pattern. */
export type TextPattern = {
  readonly source: string;
  /** Instructions once compiled; matching costs up to these times the characters. */
  readonly size: number;
  /** Where the pattern matches, without regard to case; undefined when it does not. UTF-16 offsets. */
  find(text: string): { readonly start: number; readonly end: number } | undefined;
};

/** Longest pattern, in UTF-16 code units: the automaton grows with it. */
const maxPatternLength = 500;

/**
 * Most instructions of a compiled pattern. Matching costs up to (instructions × characters), so counted
 * repeats like `(a{1,31}){1,31}` would hold the event loop for over 100 ms on one long message.
 */
const maxInstructions = 250;

/** Most instructions of all patterns that a message is matched with, one after the other. */
export const maxInstructionsTogether = 1_000;

/**
 * Compiles for RE2's engine, which has no back-references and no look-around and so cannot
 * backtrack. Throws `Error` with the reason for a pattern it refuses.
 */
export function compilePattern(source: string): TextPattern {
  if (source.trim() === '') throw new Error('is empty and would match everything');
  if (source.length > maxPatternLength) throw new Error(`is longer than ${maxPatternLength} characters`);
  const compiled = RE2JS.compile(source, RE2JS.CASE_INSENSITIVE);
  const size = compiled.programSize();
  if (size > maxInstructions) {
    throw new Error('is too large once compiled; shorten it, or repeat with * and + instead of counts');
  }
  if (compiled.matcher('').find()) throw new Error('matches the empty text and so would match everything');
  return {
    source,
    size,
    find: (text) => {
      const matcher = compiled.matcher(text);
      return matcher.find() ? { start: matcher.start(), end: matcher.end() } : undefined;
    },
  };
}
