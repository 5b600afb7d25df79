/** Reads the numbers in a refusal's words: sizes in tokens, and how long to wait. Pure. */
import type { Refusal } from './read-refusal.ts';

/** Sizes in tokens, as far as the refusal names them. */
export type RefusedSizes = {
  /** The model's limit for prompt and answer together. */
  readonly window?: number;
  readonly prompt?: number;
  /** The longest answer that the model gives. */
  readonly answer?: number;
  /** The longest answer that the account can pay for. */
  readonly affordable?: number;
};

const windows: readonly RegExp[] = [
  /\d+ \+ \d+ > (\d+)/,
  /tokens? > (\d+)/,
  /n_ctx\b\D{0,6}(\d+)/,
  /with (\d+) maximum context/,
  /(?:maximum|max|total) (?:allowed )?(?:context|prompt|model|sequence|input)[ -]?(?:token )?(?:length|window|size|limit|len)\D{0,40}(\d+)/,
  /context (?:length|window|size|limit)\D{0,40}(\d+)/,
  /token limit\D{0,12}(\d+)/,
  /limit of (\d+)/,
  /limit is (\d+)/,
  /must be <= ?(\d+)/,
  /less than (\d+) tokens/,
  /number of (?:input )?tokens allowed\D{0,4}(\d+)/,
  /range of input length should be \[1, ?(\d+)\]/,
  /max input tokens\D{0,4}(\d+)/,
  /limit (\d+), (?:used \d+, )?requested/,
];

const prompts: readonly RegExp[] = [
  /(\d+) \+ \d+ > \d+/,
  /(\d+)(?: tokens)? (?:in|from) (?:the |your )?(?:messages|prompt|input)/,
  /prompt contains (?:at least )?(\d+)/,
  /has (\d+) (?:input )?tokens/,
  /given: (\d+) /,
  /n_prompt_tokens\D{0,4}(\d+)/,
  /(?:request|prompt|input) \((\d+) tokens\)/,
  /(?:prompt|input) token count\D{0,6}(\d+)/,
  /n_keep\D{0,4}(\d+)/,
  /keep the first (\d+)/,
  /current length is (\d+)/,
  /resulted in (\d+) tokens/,
  /\(length (\d+)\)/,
  /too long: (\d+)/,
  /requires (?:approximately |about |at least )?(\d+)/,
];

const answers: readonly RegExp[] = [
  /\[1, ?(\d+)\]/,
  /at most (\d+)/,
  /less than or equal to .?(\d+)/,
  /> (\d+)/,
  /limit of (\d+)/,
  /between 1 and (\d+)/,
  /<= ?(\d+)/,
  /to (\d+) \((?:exclusive|inclusive)\)/,
  /max(?:imum)?(?: value| allowed)?(?: is| of|:)? (\d+)/,
  /limit (?:is|to) (\d+)/,
];

/** Smaller and larger sizes aren't believed, tokens. */
const believable = { least: 256, most: 10_000_000 };

/** A server's own code behind its words, as of MiniMax: "(2013)". Only 2048 looks like one and is a size. */
const codeBehind = /\((?!2048)[12]\d{3}\)/g;

export function sizesIn({ words }: Pick<Refusal, 'words'>): RefusedSizes {
  const text = words
    .slice(0, 2_000)
    .replace(codeBehind, '')
    .replace(/(\d)[,_ ](?=\d{3}\b)/g, '$1');
  const window = first(windows, text);
  const prompt = first(prompts, text);
  const answer = first(answers, text);
  const affordable = first([/can only afford (\d+)/], text);
  return {
    ...(window !== undefined && { window }),
    ...(prompt !== undefined && { prompt }),
    ...(answer !== undefined && { answer }),
    ...(affordable !== undefined && { affordable }),
  };
}

function first(patterns: readonly RegExp[], text: string): number | undefined {
  for (const pattern of patterns) {
    const found = Number(pattern.exec(text)?.[1]);
    if (found >= believable.least && found <= believable.most) return found;
  }
  return undefined;
}

/** Callers wait less; this only keeps the number finite. */
const longestWaitMs = 86_400_000;

/** Returns how long the server asks to wait, ms; undefined if it names no plausible time. */
export function waitIn({ headers, times, words }: Refusal, now: number): number | undefined {
  const date = Date.parse(headers?.get('date') ?? '');
  // Uses the answer's own clock, so that a wrong clock here doesn't matter.
  const sentAt = Number.isNaN(date) ? now : date;
  const asked =
    headerWait(headers, Number.isNaN(date) ? undefined : date) ??
    spokenWait(words) ??
    firstOf(times, (each) => timeWait(each, sentAt)) ??
    resetWait(headers, sentAt) ??
    spokenReset(words, sentAt);
  return asked === undefined ? undefined : Math.min(asked, longestWaitMs);
}

/** Reads `retry-after`, in seconds or as a date, which needs the answer's own date. */
function headerWait(headers: Headers | undefined, sentAt: number | undefined): number | undefined {
  const exact = Number(headers?.get('retry-after-ms') ?? 'none');
  if (exact >= 0) return exact;
  const value = headers?.get('retry-after') ?? '';
  if (value === '') return undefined;
  const seconds = Number(value);
  const ms = Number.isNaN(seconds) ? Date.parse(value) - (sentAt ?? Number.NaN) : seconds * 1000;
  return ms >= 0 ? ms : undefined;
}

const waitWords =
  /(?:(?:try|retry)(?: again)? (?:in|after)|retry_after|wait(?: for)?|(?:reset|renew|available)s? in)[^\d.]{0,20}((?:\d{1,9}(?:\.\d{1,9})?\s{0,2}(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)\b[\s,]{0,2}(?:and )?|\d{1,9}(?:\.\d{1,9})?(?:ms|[smhd])){1,4})/;

function spokenWait(words: string): number | undefined {
  const said = waitWords.exec(words)?.[1];
  return said === undefined ? undefined : durationIn(said);
}

const units: Readonly<Record<string, number>> = {
  ms: 1,
  mi: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Reads "7m12s", "18m20.5s", "20ms", "2 hours and 5 minutes". */
function durationIn(text: string): number | undefined {
  let ms: number | undefined;
  for (const [, count, unit = ''] of text.matchAll(/(\d{1,9}(?:\.\d{1,9})?)\s{0,2}(ms|milli|[smhd])/g)) {
    const factor = unit === 'milli' ? 1 : (units[unit] ?? 0);
    ms = (ms ?? 0) + Number(count) * factor;
  }
  return ms === undefined ? undefined : Math.round(ms);
}

/** Reads a field: seconds, a duration, a moment in seconds or milliseconds since the epoch, or a date. */
function timeWait(value: string, sentAt: number): number | undefined {
  const number = Number(value);
  if (value.trim() === '') return undefined;
  if (Number.isNaN(number)) {
    const duration = /^[\d.]+\s?[a-z]/i.test(value) ? durationIn(value.toLowerCase()) : undefined;
    const until = Date.parse(value) - sentAt;
    return duration ?? (until >= 0 ? until : undefined);
  }
  const epochMs = number > 1e12 ? number : number > 1e9 ? number * 1000 : undefined;
  const ms = epochMs === undefined ? number * 1000 : epochMs - sentAt;
  return ms >= 0 ? ms : undefined;
}

/** The headers in which limits say when they are full again: OpenAI's, Anthropic's, OpenRouter's. */
const resets: readonly (readonly [reset: string, remaining: string])[] = [
  ['x-ratelimit-reset-requests', 'x-ratelimit-remaining-requests'],
  ['x-ratelimit-reset-tokens', 'x-ratelimit-remaining-tokens'],
  ['anthropic-ratelimit-requests-reset', 'anthropic-ratelimit-requests-remaining'],
  ['anthropic-ratelimit-input-tokens-reset', 'anthropic-ratelimit-input-tokens-remaining'],
  ['anthropic-ratelimit-output-tokens-reset', 'anthropic-ratelimit-output-tokens-remaining'],
  ['anthropic-ratelimit-tokens-reset', 'anthropic-ratelimit-tokens-remaining'],
  ['x-ratelimit-reset', 'x-ratelimit-remaining'],
  ['ratelimit-reset', 'ratelimit-remaining'],
];

/** Waits for a limit that has nothing left. */
function resetWait(headers: Headers | undefined, sentAt: number): number | undefined {
  return firstOf(resets, ([reset, remaining]) => {
    const left = headers?.get(remaining);
    const at = headers?.get(reset);
    if (at === null || at === undefined || (left !== null && left !== undefined && Number(left) > 0))
      return undefined;
    return timeWait(at, sentAt);
  });
}

const resetWords =
  /(?:regain access on|resets? (?:at|on)|available (?:at|on)|until|将在)\s{0,3}(\d{4}-\d{2}-\d{2})(?:(?:[ t]| at )(\d{2}:\d{2}(?::\d{2})?))?/;

function spokenReset(words: string, sentAt: number): number | undefined {
  const [, day, time = '00:00'] = resetWords.exec(words) ?? [];
  if (day === undefined) return undefined;
  const ms = Date.parse(`${day}T${time}Z`) - sentAt;
  return ms >= 0 ? ms : undefined;
}

function firstOf<Given, Found>(
  given: readonly Given[],
  find: (one: Given) => Found | undefined,
): Found | undefined {
  for (const one of given) {
    const found = find(one);
    if (found !== undefined) return found;
  }
  return undefined;
}
