import { RE2JS } from 're2js';

/** An operator's pattern, matched in linear time whatever the pattern is. */
export type TextPattern = {
  readonly source: string;
  /** Number of instructions once compiled; matching takes up to (instructions × characters) steps. */
  readonly size: number;
  /** Returns where the pattern matches, ignoring case, as UTF-16 offsets; undefined if it doesn't. */
  find(text: string): { readonly start: number; readonly end: number } | undefined;
};

/** Longest pattern, in UTF-16 code units, because the automaton grows with it. */
const maxPatternLength = 500;

/**
 * Most instructions of a compiled pattern. Matching takes up to (instructions × characters) steps, so counted
 * repetitions like `(a{1,31}){1,31}` would block the event loop for over 100 ms on one long message.
 */
const maxInstructions = 250;

/** Most instructions of all patterns that a message is matched against, one after another. */
export const maxInstructionsTogether = 1_000;

/**
 * Compiles a pattern for RE2's engine, which has no back-references or look-around and so can't
 * backtrack. Throws `Error` with the reason if the pattern is refused.
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
