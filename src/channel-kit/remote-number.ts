/**
 * The only clamp for numbers from outside: from a platform, a server, a sender's clock. For any input, be it text,
 * NaN, 1e300 or nothing, it returns a number that is safe for a timer, a date or a loop. A value that is too large
 * becomes the largest allowed; a value that isn't a number counts as missing.
 */

/** Shortest interval of a loop whose pace a remote side sets. */
export const shortestGapMs = 1_000;
/** Longest wait that a remote side can impose before it is asked again. */
export const longestWaitMs = 5 * 60_000;
/** A clock that is ahead by at most this is trusted. */
export const clockSkewMs = 60_000;
/** 2010-01-01: older than any network that Parley speaks to. */
export const earliestTime = 1_262_304_000_000;

const longestAskedMs = 30 * 24 * 3_600_000;
const longestDigits = 64;
const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

export type RemoteRange = {
  readonly min: number;
  readonly max: number;
  /** Used for values that are missing or not numbers; it must be within the range. */
  readonly fallback: number;
};

/** Clamps the value to [min, max]; Infinity becomes max. Also reads numbers in text (headers). */
export function clampRemote(value: unknown, { min, max, fallback }: RemoteRange): number {
  const number = readNumber(value);
  return number === undefined ? fallback : Math.min(max, Math.max(min, number));
}

/** Returns an integer within [0, max], for a count, a depth, a length or an offset; 0 if it is missing. */
export function remoteCount(value: unknown, max: number = Number.MAX_SAFE_INTEGER): number {
  return Math.floor(clampRemote(value, { min: 0, max, fallback: 0 }));
}

/** Returns a size in bytes; undefined if it is missing, negative or not a number, since 0 would be a valid size. */
export function remoteSize(value: unknown): number | undefined {
  const number = readNumber(value);
  return number === undefined || number < 0 ? undefined : remoteCount(number);
}

/**
 * Returns the wait that a remote side asked for, ms: finite, at most 30 days, undefined if it names none. It is meant
 * for display and comparison (`SendResult.afterMs`); `retryAfterMs` returns how long to wait. `unitMs` is the value's
 * unit: 1000 for seconds, the default 1 for milliseconds.
 */
export function askedWaitMs(value: unknown, unitMs = 1): number | undefined {
  const number = readNumber(value);
  if (number === undefined || number < 0) return undefined;
  return Math.ceil(clampRemote(number * unitMs, { min: 0, max: longestAskedMs, fallback: 0 }));
}

export type RetryWait = {
  /** The value's unit, ms: 1000 for seconds, the default 1 for milliseconds. */
  readonly unitMs?: number;
  /** Wait, ms, if the remote side names none. Default: the shortest gap. */
  readonly fallbackMs?: number;
};

/** Returns how long to wait before the next attempt, ms: within [shortestGapMs, longestWaitMs], whatever was asked. */
export function retryAfterMs(
  value: unknown,
  { unitMs = 1, fallbackMs = shortestGapMs }: RetryWait = {},
): number {
  const range = { min: shortestGapMs, max: longestWaitMs };
  const fallback = clampRemote(fallbackMs, { ...range, fallback: shortestGapMs });
  return Math.ceil(clampRemote(askedWaitMs(value, unitMs), { ...range, fallback }));
}

/**
 * Returns a date as ms since the epoch. Impossible dates, before 2010 or in the future by more than a small skew,
 * become `now`: a sender whose clock is 0 wrote now, not in 1970.
 */
export function remoteTime(value: unknown, now: number, unitMs = 1): number {
  const number = readNumber(value);
  if (number === undefined) return now;
  const time = Math.floor(number * unitMs);
  return time >= earliestTime && time <= now + clockSkewMs ? time : now;
}

/** Returns undefined for NaN and anything that doesn't look like a number; keeps ±Infinity, which is clamped later. */
function readNumber(value: unknown): number | undefined {
  if (typeof value === 'bigint') return Number(value);
  const isDecimal = typeof value === 'string' && value.length <= longestDigits && decimal.test(value.trim());
  const number = isDecimal ? Number(value) : value;
  return typeof number !== 'number' || Number.isNaN(number) ? undefined : number;
}
