/** The model's patterns run on RE2's engine, so that matching takes linear time whatever the model writes. */
import { RE2JS } from 're2js';
import { fileProblem } from './file-problem.ts';

const maxPatternLength = 500;
/** Matching takes up to instructions × characters steps, so both are limited (about 20 ms per line). */
const maxInstructions = 250;
/** Ignoring case in a class takes 5 ms per million characters of its ranges, before it is compiled. */
const maxRanges = 4_000_000;
const rangeEnds = /-(?:\\x\{?([\da-f]{2,6})|([^\\]))/giu;

/** How much of a line or path is matched against patterns, in UTF-16 code units. */
export const maxSearchedLength = 4096;

export type TextMatcher = (text: string) => boolean;

/** Compiles a regular expression that matches anywhere in a line. */
export function compileSearch(source: string, options: { readonly ignoresCase: boolean }): TextMatcher {
  checkLength(source);
  return compile(source, { shown: source, flags: options.ignoresCase ? RE2JS.CASE_INSENSITIVE : 0 });
}

/**
 * Compiles a glob. `*` and `?` stay within one name, `**` crosses folders, and `[a-z]`, `[!a-z]` and `{a,b}` are
 * supported. A pattern without a slash matches the file's name in any folder.
 */
export function compileGlob(glob: string): TextMatcher {
  checkLength(glob);
  const anchored = glob.includes('/') ? glob.replace(/^\.?\/+/, '') : `**/${glob}`;
  return compile(`^(?:${globToPattern(anchored)})$`, { shown: glob, flags: RE2JS.DOTALL });
}

function compile(
  source: string,
  { shown, flags }: { readonly shown: string; readonly flags: number },
): TextMatcher {
  let compiled: RE2JS;
  checkRanges(source, shown);
  try {
    compiled = RE2JS.compile(source, flags);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw fileProblem(`The pattern ${shown} isn't valid (RE2, no look-around): ${reason}`, error);
  }
  if (compiled.programSize() > maxInstructions) {
    throw fileProblem(`The pattern ${shown} is too large; use * and + instead of counted repeats.`);
  }
  return (text) => compiled.matcher(text.slice(0, maxSearchedLength)).find();
}

function checkLength(pattern: string): void {
  if (pattern !== '' && pattern.length <= maxPatternLength) return;
  throw fileProblem(`A pattern must have 1 to ${maxPatternLength} characters.`);
}

/** Throws for ranges that are too large; a range is at most as large as its last character's code. */
function checkRanges(source: string, shown: string): void {
  let size = 0;
  for (const [, code, last = ''] of source.matchAll(rangeEnds))
    size += code === undefined ? (last.codePointAt(0) ?? 0) : Number.parseInt(code, 16);
  if (size > maxRanges) throw fileProblem(`The pattern ${shown} is too large; use fewer or smaller ranges.`);
}

function globToPattern(glob: string): string {
  let pattern = '';
  let openBraces = 0;
  // One token at a time: `**/`, `**`, a character class, an escaped character, or a single character.
  for (const [token] of glob.matchAll(/\*\*\/|\*\*|\[!?\]?[^\]]*\]|\\.|./gsu)) {
    if (token === '{') openBraces++;
    if (token === '}' && openBraces > 0) {
      openBraces--;
      pattern += ')';
    } else {
      pattern += tokenToPattern(token, openBraces > 0);
    }
  }
  return pattern + ')'.repeat(openBraces);
}

function tokenToPattern(token: string, isInBraces: boolean): string {
  switch (token) {
    case '**/':
      return '(?:.*/)?';
    case '**':
      return '.*';
    case '*':
      return '[^/]*';
    case '?':
      return '[^/]';
    case '{':
      return '(?:';
    case ',':
      return isInBraces ? '|' : ',';
  }
  if (token.length > 1 && token.startsWith('[')) return classToPattern(token);
  return RE2JS.quote(token.length > 1 && token.startsWith('\\') ? token.slice(1) : token);
}

function classToPattern(token: string): string {
  const isNegated = token.startsWith('[!');
  const members = token.slice(isNegated ? 2 : 1, -1).replace(/[\\[\]^&]/g, '\\$&');
  return `[${isNegated ? '^/' : ''}${members}]`;
}
