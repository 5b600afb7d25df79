/**
 * The one clamp for numbers that come from outside: a platform, a server, a sender's clock. Whatever it is
 * given, text, NaN, 1e300 or nothing, it returns a number that a timer, a date or a loop can bear. What is
 * too large counts as the largest that is allowed; what is no number counts as missing.
 */

/** No loop that a remote side paces turns faster than this. */
export const shortestGapMs = 1_000;
/** The longest wait that a remote side is granted before it is asked again. */
export const longestWaitMs = 5 * 60_000;
/** A clock that is ahead by no more than this is believed. */
export const clockSkewMs = 60_000;
/** 2010-01-01: older than any network that Parley speaks to. */
export const earliestTime = 1_262_304_000_000;

const longestAskedMs = 30 * 24 * 3_600_000;
const longestDigits = 64;
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

export type RemoteRange = {
  readonly min: number;
  readonly max: number;
  /** For what is missing, NaN or no number; it must lie in the range itself. */
  readonly fallback: number;
};

/** The value within [min, max]; Infinity is the max. Reads numbers that came as text (headers). */
export function clampRemote(value: unknown, { min, max, fallback }: RemoteRange): number {
  const number = readNumber(value);
  return number === undefined ? fallback : Math.min(max, Math.max(min, number));
}

/** A whole number within [0, max]: a count, a depth, a length, an offset. 0 when it is missing. */
export function remoteCount(value: unknown, max: number = Number.MAX_SAFE_INTEGER): number {
  return Math.floor(clampRemote(value, { min: 0, max, fallback: 0 }));
}

/** A size in bytes; undefined when it is missing, negative or no number, since 0 would be a statement. */
export function remoteSize(value: unknown): number | undefined {
  const number = readNumber(value);
  return number === undefined || number < 0 ? undefined : remoteCount(number);
}

/**
 * A wait that a remote side asked for, ms: finite, at most 30 days, undefined when it names none. To be said
 * and compared (`SendResult.afterMs`); `retryAfterMs` is how long to wait. `unitMs` is the value's unit: 1000
 * for seconds, the default 1 for milliseconds.
 */
export function askedWaitMs(value: unknown, unitMs = 1): number | undefined {
  const number = readNumber(value);
  if (number === undefined || number < 0) return undefined;
  return Math.ceil(clampRemote(number * unitMs, { min: 0, max: longestAskedMs, fallback: 0 }));
}

export type RetryWait = {
  /** The value's unit, ms: 1000 for seconds, the default 1 for milliseconds. */
  readonly unitMs?: number;
  /** In ms, for a remote side that names none. The shortest gap when absent. */
  readonly fallbackMs?: number;
};

/** How long to wait before the next attempt, in ms: within [shortestGapMs, longestWaitMs], whatever was asked. */
export function retryAfterMs(
  value: unknown,
  { unitMs = 1, fallbackMs = shortestGapMs }: RetryWait = {},
): number {
  const range = { min: shortestGapMs, max: longestWaitMs };
  const fallback = clampRemote(fallbackMs, { ...range, fallback: shortestGapMs });
  return Math.ceil(clampRemote(askedWaitMs(value, unitMs), { ...range, fallback }));
}

/**
 * A date as ms since the epoch. Impossible dates, before 2010 or in the future by more than a small skew,
 * become `now`: a sender whose clock is 0 wrote now rather than in 1970.
 */
export function remoteTime(value: unknown, now: number, unitMs = 1): number {
  const number = readNumber(value);
  if (number === undefined) return now;
  const time = Math.floor(number * unitMs);
  return time >= earliestTime && time <= now + clockSkewMs ? time : now;
}

/** NaN and what does not look like a number are undefined; ±Infinity stays, to be clamped. */
function readNumber(value: unknown): number | undefined {
  if (typeof value === 'bigint') return Number(value);
  const isDecimal = typeof value === 'string' && value.length <= longestDigits && decimal.test(value.trim());
  const number = isDecimal ? Number(value) : value;
  return typeof number !== 'number' || Number.isNaN(number) ? undefined : number;
}
