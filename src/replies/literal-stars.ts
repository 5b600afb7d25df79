/**
 * Tells stars that are wildcards or operators (`src/**`, `*.log`, `a*b*c`, `x**2`) from those that mark emphasis. A star
 * next to the signs of a path is a wildcard; one between two letters or digits multiplies, unless emphasis is open.
 */

/** Scripts that put spaces between words; emphasis begins at a word there, but anywhere in Chinese or Japanese. */
const WORD = /[\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\d]/u;
const BEFORE = /[\s"'“‘([{,:=>|]/;
const CLOSES = /[\s"'”’)\]},;:!?|.]/;
const AFTER = /[\s"'”’)\]},;:!?|]/;
/** How far emphasis that begins with a path is followed, UTF-16 units. */
const LOOK_AHEAD = 400;
/** A line that starts a new block, so that emphasis doesn't continue from the previous one. */
const NEW_BLOCK = /[ \t>]*(?:\n|$|(?:[-*+]|\d{1,9}[.)])[ \t]|#{1,6} |\|)/y;
/** `*.log`, `*.test.*`, `*_test.go`: what follows the star. */
const NAME_PATTERN = /(?:\.[a-z0-9*{]|[-_][A-Za-z0-9_.-]*[A-Za-z0-9](?![\w*.-]))/y;

/** Reads a text's runs of stars, in order. */
export function createStarReader(text: string) {
  /** The lengths of the runs that have opened emphasis. */
  const open = new Set<number>();
  const judge = (start: number, end: number): 'literal' | 'markup' => {
    const length = end - start;
    const before = text.charAt(start - 1) || '\n';
    const after = text.charAt(end) || '\n';
    if (length > 2) return 'markup';
    if (isInPath(text, { start, end }, open.has(length))) return 'literal';
    if (open.has(length) && !/\s/.test(before)) {
      open.delete(length);
      return 'markup';
    }
    if (isOperator(text, { start, end }) || isPattern(text, { start, end })) return 'literal';
    if (!/\s/.test(after)) open.add(length);
    return 'markup';
  };
  return {
    /** Call it with each run of stars outside code. */
    isLiteral: (start: number, end: number) => judge(start, end) === 'literal',
    /** Call it at each line break and bar. `end`: the position after it. */
    pass: (sign: '\n' | '|', end: number) => {
      NEW_BLOCK.lastIndex = end;
      if (sign === '|' || NEW_BLOCK.test(text)) open.clear();
    },
  };
}

type Run = { readonly start: number; readonly end: number };

/** Signs that emphasis would hardly touch on both sides. */
function isInPath(text: string, { start, end }: Run, isOpen: boolean): boolean {
  const before = text.charAt(start - 1);
  const after = text.charAt(end);
  if (before === '/') return after === '/' || /^(?:\.[a-z0-9*{]|[-_]\w)/.test(text.slice(end, end + 2));
  return !isOpen && /[-_.]/.test(before) && /[-_./]/.test(after);
}

function isOperator(text: string, { start, end }: Run): boolean {
  const before = text.charAt(start - 1);
  const after = text.charAt(end);
  if (!(WORD.test(before) || /[)\]]/.test(before))) return false;
  if (after === '(') return true;
  if (!WORD.test(after)) return false;
  if (end - start === 1) return true;
  const isTight = /^[^\s*]+\*\*(?!\*)/.test(text.slice(end, end + 40));
  if (isTight) return /\d/.test(before) && /\d/.test(after);
  return /[\d)\]]/.test(before) || /^(?:\d+|[A-Za-z])(?![A-Za-z\d])/.test(text.slice(end, end + 12));
}

/** Judges a run where no emphasis is open. */
function isPattern(text: string, { start, end }: Run): boolean {
  const before = text.charAt(start - 1) || '\n';
  const after = text.charAt(end) || '\n';
  const isSingle = end - start === 1;
  if (AFTER.test(after)) return /[-_./]/.test(before);
  if (isSingle && before === '.' && WORD.test(after)) return true;
  if (!BEFORE.test(before)) return false;
  if (after === '/') return !isClosed(text, { start, end });
  NAME_PATTERN.lastIndex = end;
  return isSingle && NAME_PATTERN.test(text);
}

/**
 * Says whether the next run of the same length closes emphasis: in bold text that begins with a path, such as
 * /etc/hosts, the first run isn't a wildcard.
 */
function isClosed(text: string, { start, end }: Run): boolean {
  const runs = /\*+|\n[ \t>]*\n/g;
  runs.lastIndex = end;
  for (let found = runs.exec(text); found !== null; found = runs.exec(text)) {
    const { 0: run, index } = found;
    if (!run.startsWith('*') || index > end + LOOK_AHEAD) return false;
    if (run.length !== end - start) continue;
    return /[^\s/]/.test(text.charAt(index - 1)) && CLOSES.test(text.charAt(index + run.length) || '\n');
  }
  return false;
}
