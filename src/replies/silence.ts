/**
 * Decides "answer or stay silent". The rules, in order (spec 9.1):
 * if the entire text is a silent token (in any case, however wrapped) or the JSON `{"action": token}`, it is
 * silent; a token at an edge of other text is stripped and the rest is sent; a token in the middle, quoted on
 * a line with other words, or followed by `:` and text, is ordinary text.
 */
export type Silence =
  | { readonly kind: 'silent' }
  /** `text` is trimmed; empty only when nothing was written at all. */
  | { readonly kind: 'visible'; readonly text: string };

/** A heartbeat that says OK and at most this many UTF-16 units besides is silent. */
const HEARTBEAT_REST_LIMIT = 300;

/** Says whether a text that was cut from a token is too short to be sent: nobody but a schedule has asked for it. */
export function isShortHeartbeat(rest: string, context: SilenceContext): boolean {
  const isHeartbeat = context.length > 0 && context.every((source) => source === 'heartbeat');
  return isHeartbeat && rest.length <= HEARTBEAT_REST_LIMIT;
}

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
  if (isShortHeartbeat(visible, context)) return { kind: 'silent' };
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

/** The origin of something that a turn takes: a person, a schedule, the end of other work, or another agent. */
export type SilenceSource = 'chat' | 'heartbeat' | 'announce' | 'agent-reply';

/**
 * Everything that the turn took which wrote a text. Each source adds the word that, besides NO_REPLY, means "send
 * nothing" as an answer to it.
 */
export type SilenceContext = readonly SilenceSource[];

/** For a text whose turn may still take anything. */
export const anySource: SilenceContext = ['chat', 'heartbeat', 'announce', 'agent-reply'];

/**
 * The forms of a silent token in a text, as one grammar shared by the final decision and the stream guard, so
 * that the guard can never show text that the decision removes.
 */
type SilenceGrammar = {
  /** A token at the beginning, with what separates it from the rest. */
  readonly head: readonly RegExp[];
  /** A token at the end of a line with other words. */
  readonly tail: RegExp;
  /** A token at the end, if there are only blanks before it on its line. */
  readonly lineTail: RegExp;
  /** The entire text is the token as JSON, or fenced. */
  readonly whole: readonly RegExp[];
  /** Every text that may still grow into a `head` or `whole` (a superset, since withholding text is safe). */
  readonly mayBecomeHead: readonly RegExp[];
  /** Every end of a text that may still grow into a `tail`. */
  readonly mayBecomeTail: RegExp;
};

const OWN_TOKENS = [
  ['heartbeat', 'HEARTBEAT_OK'],
  ['announce', 'ANNOUNCE_SKIP'],
  ['agent-reply', 'REPLY_SKIP'],
] as const satisfies readonly (readonly [SilenceSource, string])[];

/** A word whose meaning depends on what the turn took. */
const OWN_TOKEN = new RegExp(OWN_TOKENS.map(([, token]) => token).join('|'), 'i');

/** Says whether a text has to be judged by what its turn took; any other text means the same in every context. */
export function dependsOnContext(text: string): boolean {
  return OWN_TOKEN.test(text);
}

/** Emphasis may surround a token on a line with other text. Quotes and ticks there mean the word itself. */
const EMPHASIS = '[*_~]{0,3}';
/** On its own line a token may be wrapped in anything that models are known to use. */
const WRAP = '[*_~`"\'“”‘’«»()<>\\[\\]]{0,6}';
const END = '[*_~`"\'“”‘’«»()<>\\[\\].!…]{0,6}';
/** Gap between the pieces of a token. Bounded, because two adjacent gaps would be tried in every possible split. */
const GAP = '\\s{0,40}';
/** Scripts that are written without spaces, so a token may touch them. The full-width colon is excluded. */
const UNSPACED = '\\u2e80-\\u9fff\\uac00-\\ud7af\\uff00-\\uff19\\uff1b-\\uffef';
const NOT_NAMED = `(?!${GAP}[:：])`;
/** Text required before a token at the end of a line, besides the line's start. */
const BEFORE_TAIL = `[\\s.!?…)\\]*~${UNSPACED}]`;

/** One grammar for each set of tokens; bit n of the index: the token n of `OWN_TOKENS` counts. */
const grammars = Array.from({ length: 2 ** OWN_TOKENS.length }, (_, set) =>
  grammarOf(['NO_REPLY', ...OWN_TOKENS.flatMap(([, token], bit) => (set & (1 << bit) ? [token] : []))]),
);

export function silenceGrammar(context: SilenceContext): SilenceGrammar {
  const set = OWN_TOKENS.reduce((bits, [source], bit) => bits | (context.includes(source) ? 1 << bit : 0), 0);
  return grammars[set] ?? grammarOf(['NO_REPLY']);
}

function grammarOf(tokens: readonly string[]): SilenceGrammar {
  const token = `(?:${tokens.join('|')})`;
  const json = `\\{${GAP}"action"${GAP}:${GAP}"${GAP}${token}${GAP}"${GAP}\\}`;
  return {
    head: [
      new RegExp(`^${WRAP}${token}${END}[ \\t]*(?:\\n|$)${NOT_NAMED}`, 'i'),
      new RegExp(`^${EMPHASIS}${token}${EMPHASIS}[.!…]{0,3}(?=\\s|$|[${UNSPACED}])${NOT_NAMED}`, 'i'),
    ],
    tail: new RegExp(`(?:^|(?<=${BEFORE_TAIL}))${EMPHASIS}${token}${EMPHASIS}$`, 'i'),
    lineTail: new RegExp(`${WRAP}${token}${END}:?${END}$`, 'i'),
    whole: [
      new RegExp(`^${json}$`, 'i'),
      new RegExp(`^\`{3,}[\\w-]{0,12}${GAP}(?:${json}|${WRAP}${token}${END})${GAP}\`{3,}$`, 'i'),
    ],
    mayBecomeHead: tokens.flatMap((word) => [
      new RegExp(`^${WRAP}${prefixOf(word, `${END}${GAP}[:：]?${END}${GAP}`)}$`, 'i'),
      new RegExp(`^${jsonPrefix(word, '')}$`, 'i'),
      new RegExp(
        `^\`{1,8}[\\w-]{0,12}${GAP}(?:${jsonPrefix(word, '[`\\s]{0,40}')}|${WRAP}${prefixOf(word, `${END}[\`\\s]{0,40}`)})?$`,
        'i',
      ),
    ]),
    mayBecomeTail: new RegExp(
      `^[ \\t]*${WRAP}(?:${tokens.map((word) => prefixOf(word, `${END}:?${END}`)).join('|')})$`,
      'i',
    ),
  };
}

/** Returns a pattern for every prefix of `word`, where the complete word is followed by `rest`. */
function prefixOf(word: string, rest: string): string {
  return [...word].reduceRight((tail, char) => `(?:${literalChar(char)}${tail})?`, `(?:${rest})`);
}

function jsonPrefix(word: string, rest: string): string {
  const value = prefixOf(word, `${GAP}(?:"${GAP}(?:\\}${GAP}(?:${rest}))?)?`);
  const afterKey = `${GAP}(?::${GAP}(?:"${GAP}${value})?)?`;
  return `\\{${GAP}${prefixOf('"action"', afterKey)}`;
}

function literalChar(char: string): string {
  return char.replace(/[.*+?^${}()|[\]\\]/, '\\$&');
}
