/**
 * Keeps formulas, file globs and names in underscores from being read as Markdown: `$a_1*b_1$`, `\[x\]`, `src/**` and
 * `__init__.py` come out as written. Their signs are replaced one for one by noncharacters of Unicode before the text
 * is parsed, and put back afterwards. Code is left to the parser. Linear, because each search only moves forwards.
 */
/** Signs that the parser may read as markup, and the white space that it drops at the edges of a line. */
const SIGNS = '\\`*_[]()#+-.!|<>&~=:@/ \t';
const FIRST_STAND_IN = 0xfdd0;
const STAND_INS = /[\ufdd0-\ufdef]/g;

/** Longest formulas, UTF-16 units; anything longer is text between two unrelated signs. */
const LONGEST_INLINE = 400;
const LONGEST_DISPLAY = 4_000;

const FENCE = /^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})/;
/** Where something literal, or code that must not be searched for it, may begin. */
const STARTS = /`+|\$\$?|\\[\s\S]?|https?:\/\/[^\s*]+|\*+|__|\||\n/g;

/** Replaces the signs of literal text by others of the same length; `showLiterals` puts them back. */
export function hideLiterals(markdown: string): string {
  if (!/[$*\\]|__/.test(markdown) || markdown.search(STAND_INS) !== -1) return markdown;
  let hidden = '';
  let start = 0;
  for (const { from, to } of codeBlocks(markdown)) {
    hidden += hideIn(markdown.slice(start, from)) + markdown.slice(from, to);
    start = to;
  }
  return hidden + hideIn(markdown.slice(start));
}

/** Puts the signs of literal text back. */
export function showLiterals(text: string): string {
  return text.replace(STAND_INS, (one) => SIGNS.charAt(one.charCodeAt(0) - FIRST_STAND_IN) || one);
}

type Range = { readonly from: number; readonly to: number };

function* codeBlocks(text: string): Generator<Range> {
  let open: { readonly from: number; readonly marker: string } | undefined;
  for (const { 0: line, index } of text.matchAll(/[^\n]*\n|[^\n]+$/g)) {
    const marker = FENCE.exec(line)?.[1];
    if (open === undefined) {
      if (marker !== undefined) open = { from: index, marker };
    } else if (marker?.startsWith(open.marker) && /^[ \t>]*[`~]+\s*$/.test(line)) {
      yield { from: open.from, to: index + line.length };
      open = undefined;
    }
  }
  if (open !== undefined) yield { from: open.from, to: text.length };
}

/** Hides the literals of a text without fenced code. */
function hideIn(text: string): string {
  const hidden: Range[] = [];
  const finder = createFinder(text);
  const stars = createStarReader(text);
  const starts = new RegExp(STARTS);
  for (let found = starts.exec(text); found !== null; found = starts.exec(text)) {
    const { 0: sign, index } = found;
    const end = index + sign.length;
    if (sign === '\n' || sign === '|') stars.pass(sign, end);
    else if (sign.startsWith('`')) starts.lastIndex = finder.codeEnd(index, sign.length) ?? end;
    else if (sign.startsWith('*')) {
      if (stars.isLiteral(index, end)) hidden.push({ from: index, to: end });
    } else if (!sign.startsWith('http')) {
      const to = literalEnd(text, found, finder);
      if (to === undefined) continue;
      hidden.push({ from: index, to });
      starts.lastIndex = to;
    }
  }
  return replaceSigns(text, hidden);
}

/** Returns where the formula, path or name that begins here ends; undefined if none does. */
function literalEnd(text: string, { 0: sign, index }: RegExpExecArray, finder: Finder): number | undefined {
  if (sign === '__') return nameEnd(text, index);
  if (sign === '$$') return finder.displayEnd(index, '$$');
  if (sign === '$') return finder.inlineEnd(index);
  if (sign === '\\(') return finder.bracketEnd(index);
  if (sign === '\\[') return isDisplay(text, index, finder) ? finder.displayEnd(index, '\\]') : undefined;
  return pathEnd(text, index);
}

/** Models also escape brackets that are no formula: `\[x\] done`, `\[1\]`. */
function isDisplay(text: string, index: number, finder: Finder): boolean {
  const end = finder.displayEnd(index, '\\]');
  if (end === undefined || text[end] === '(') return false;
  const isAlone =
    /(?:^|\n)[ \t>]*$/.test(text.slice(Math.max(0, index - 80), index)) &&
    /^[ \t.,;]*(?:\n|$)/.test(text.slice(end, end + 80));
  return isAlone || /[\\^_=+*/<>{}|]|\S - \S/.test(text.slice(index + 2, end - 2));
}

/** Names that Python and JavaScript write with two underscores on both sides. */
const NAMES = new Set(
  `all annotations bool builtins call class contains del delitem dict doc enter eq exit file fixtures format
  future getattr getitem hash init iter len main mocks module mro name new next package path post_init proto
  pycache repr set setattr setitem slots snapshots spec str tests typename version`.split(/\s+/),
);
const NAME = /__([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)__/y;

function nameEnd(text: string, index: number): number | undefined {
  NAME.lastIndex = index;
  const name = NAME.exec(text)?.[1];
  if (name === undefined) return undefined;
  const end = index + name.length + 4;
  const isPath = /[./\\]/.test(text.charAt(index - 1)) || /^(?:\.\w|[(/\\])/.test(text.slice(end, end + 2));
  return isPath || NAMES.has(name) ? end : undefined;
}

const PATH = /[^\s"'`<>|]*/y;

/** Returns the end of a Windows path, whose separators would be read as escapes: `C:\*.log`, `\\server\share`. */
function pathEnd(text: string, index: number): number | undefined {
  const isDrive = /(?:^|[^A-Za-z0-9])[A-Za-z]:$/.test(text.slice(Math.max(0, index - 3), index));
  const isServer = /^\\\\\w/.test(text.slice(index, index + 3)) && !/\S/.test(text.charAt(index - 1));
  if (!isDrive && !isServer) return undefined;
  PATH.lastIndex = index;
  const path = PATH.exec(text)?.[0] ?? '';
  return index + path.replace(/[*_)\].,;:!?]*$/, (edge) => (/^\*[.)\],;:!?]*$/.test(edge) ? '*' : '')).length;
}

type Finder = ReturnType<typeof createFinder>;

/** Finds the ends of code and formulas. Positions only grow from call to call, so each character is passed once. */
function createFinder(text: string) {
  /** The runs of backticks by length, last first. */
  const runs = new Map<number, number[]>();
  for (const { 0: run, index } of [...text.matchAll(/`+/g)].reverse()) {
    const known = runs.get(run.length);
    if (known) known.push(index);
    else runs.set(run.length, [index]);
  }
  const after = (search: (from: number) => number) => {
    let next = -1;
    return (from: number) => {
      if (next < from && next !== Number.POSITIVE_INFINITY) next = search(from);
      return next;
    };
  };
  const find = (pattern: RegExp) =>
    after((from) => {
      pattern.lastIndex = from;
      return pattern.exec(text)?.index ?? Number.POSITIVE_INFINITY;
    });
  const blank = find(/\n[ \t>]*\n/g);
  const closers = {
    $$: find(/(?<!\\)\$\$/g),
    '\\]': find(/(?<!\\)\\\]/g),
    '\\)': find(/(?<!\\)\\\)/g),
    $: find(/(?<=[^\s\\$]|\\\$)\$(?![\d$])/g),
  };
  const isWithin = (from: number, to: number, limit: number) => to - from <= limit && to < blank(from);
  return {
    codeEnd: (from: number, length: number) => {
      const known = runs.get(length) ?? [];
      while ((known.at(-1) ?? Number.POSITIVE_INFINITY) <= from) known.pop();
      const close = known.at(-1);
      return close !== undefined && close < blank(from) ? close + length : undefined;
    },
    displayEnd: (from: number, closer: '$$' | '\\]') => {
      const close = closers[closer](from + 2);
      const isOwnLine = /^[ \t]*\n/.test(text.slice(from + 2, from + 80));
      const limit = isOwnLine ? close - from <= LONGEST_DISPLAY : isWithin(from, close, LONGEST_DISPLAY);
      return limit && text.slice(from + 2, close).trim() !== '' ? close + 2 : undefined;
    },
    bracketEnd: (from: number) => {
      const close = closers['\\)'](from + 2);
      const isLink = text[from - 1] === ']';
      return !isLink && isWithin(from, close, LONGEST_INLINE) && close > from + 2 ? close + 2 : undefined;
    },
    inlineEnd: (from: number) => {
      const close = closers.$(from + 2);
      if (!isWithin(from, close, LONGEST_INLINE)) return undefined;
      return isFormula(text.slice(from + 1, close)) ? close + 1 : undefined;
    },
  };
}

/** Tells a formula from prices and shell variables: `$5 and $10`, `$HOME/*.log and $PATH`. */
function isFormula(content: string): boolean {
  if (/^[\s*]|[\s*]$|\n[\s\S]*\n/.test(content)) return false;
  if (/[\\^{}=]/.test(content)) return true;
  if (content.includes('|')) return /^\|[^|]+\|$/.test(content);
  return !content.includes('**') && !/^\d[\s\S]*\s/.test(content);
}

function replaceSigns(text: string, ranges: readonly Range[]): string {
  let out = '';
  let start = 0;
  for (const { from, to } of ranges) {
    out += text.slice(start, from) + standIns(text, from, to);
    start = to;
  }
  return out + text.slice(start);
}

/** Keeps line breaks, and what marks the quote or list around a formula at the start of each line. */
function standIns(text: string, from: number, to: number): string {
  const [first = '', ...rest] = text.slice(from, to).split('\n');
  if (rest.length === 0) return standIn(first);
  const before = text.slice(Math.max(0, text.lastIndexOf('\n', from - 1) + 1), from);
  const around = before.search(/[^ \t>]|$/);
  const lines = rest.map((line) => {
    const kept = Math.min(around, line.search(/[^ \t>]|$/));
    return line.slice(0, kept) + standIn(line.slice(kept));
  });
  return [standIn(first), ...lines].join('\n');
}

function standIn(text: string): string {
  return text.replace(/[^\w\s]|[_ \t]/g, (one) => {
    const at = SIGNS.indexOf(one);
    return at === -1 ? one : String.fromCharCode(FIRST_STAND_IN + at);
  });
}

// Tells stars that are wildcards or operators (`src/**`, `*.log`, `a*b*c`, `x**2`) from those that mark emphasis. A
// star next to the signs of a path is a wildcard; one between two letters or digits multiplies, unless emphasis is
// open.

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
function createStarReader(text: string) {
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
