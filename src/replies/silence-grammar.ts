/** Where a text was written, which decides the words that, besides NO_REPLY, mean "send nothing". */
export type SilenceContext = 'chat' | 'heartbeat' | 'announce' | 'agent-reply';

/**
 * The forms of a silent token in a text, as one grammar shared by the final decision and the stream guard, so
 * that the guard can never show text that the decision removes.
 */
export type SilenceGrammar = {
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

const TOKENS: Record<SilenceContext, readonly string[]> = {
  chat: ['NO_REPLY'],
  heartbeat: ['NO_REPLY', 'HEARTBEAT_OK'],
  announce: ['NO_REPLY', 'ANNOUNCE_SKIP'],
  'agent-reply': ['NO_REPLY', 'REPLY_SKIP'],
};

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

const grammars: Record<SilenceContext, SilenceGrammar> = {
  chat: grammarOf(TOKENS.chat),
  heartbeat: grammarOf(TOKENS.heartbeat),
  announce: grammarOf(TOKENS.announce),
  'agent-reply': grammarOf(TOKENS['agent-reply']),
};

export function silenceGrammar(context: SilenceContext): SilenceGrammar {
  return grammars[context];
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
