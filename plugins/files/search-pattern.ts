/** Patterns of the model run on RE2's engine: matching takes linear time whatever it writes. */
import { RE2JS } from 're2js';
import { fileProblem } from './file-problem.ts';

const maxPatternLength = 500;
/** Matching costs up to instructions × characters, so both are bounded (about 20 ms per line). */
const maxInstructions = 250;
/** Ignoring the case of a class takes 5 ms for each million characters of its ranges, before it is compiled. */
const maxRanges = 4_000_000;
const rangeEnds = /-(?:\\x\{?([\da-f]{2,6})|([^\\]))/giu;

/** The longest stretch of a line or path that patterns see, in UTF-16 code units. */
export const maxSearchedLength = 4096;

export type TextMatcher = (text: string) => boolean;

/** A regular expression that matches anywhere in a line. */
export function compileSearch(source: string, options: { readonly ignoresCase: boolean }): TextMatcher {
  checkLength(source);
  return compile(source, { shown: source, flags: options.ignoresCase ? RE2JS.CASE_INSENSITIVE : 0 });
}

/**
 * `*` and `?` stay within one name, `**` crosses folders, `[a-z]`, `[!a-z]` and `{a,b}` are known. A
 * pattern without a slash matches the file's name in any folder.
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
    throw fileProblem(`The pattern ${shown} is not valid (RE2, no look-around): ${reason}`, error);
  }
  if (compiled.programSize() > maxInstructions) {
    throw fileProblem(`The pattern ${shown} is too large; use * and + instead of counted repeats.`);
  }
  return (text) => compiled.matcher(text.slice(0, maxSearchedLength)).find();
}

function checkLength(pattern: string): void {
  if (pattern !== '' && pattern.length <= maxPatternLength) return;
  throw fileProblem(`A pattern has 1 to ${maxPatternLength} characters.`);
}

/** A range is no larger than its last character's code. */
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
