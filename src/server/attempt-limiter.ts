/**
 * Answers wrong secrets more and more shortly. A secret is judged first, so that the right one passes at
 * once, from a locked address too: it is too long to be guessed, however many attempts there are. What the
 * lock takes from a guesser is the answer, and from everybody else nothing.
 */
import type { Clock } from '#contracts/clock.ts';

export interface AttemptLimiter {
  /** `isRight` is asked once, at once. Never throws for the lockouts' sake. */
  attempt(source: string, isRight: () => boolean): Promise<Attempt>;
}

export type Attempt =
  | { readonly kind: 'right' }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

export type AttemptLimits = {
  /** Wrong attempts from one source within a window. */
  readonly perSource: number;
  /** Length of the window and of the lock that follows, ms. */
  readonly windowMs: number;
  /** Most sources that are remembered; the oldest is dropped. */
  readonly maxSources: number;
};

export const defaultAttemptLimits: AttemptLimits = { perSource: 10, windowMs: 60_000, maxSources: 10_000 };

/** Where lockouts outlive the process. Neither throws. */
export interface Lockouts {
  /** Until when a source is locked, ms since the epoch. */
  find(source: string): Promise<number | undefined>;
  /** A source is locked from now on; resolves when that outlives the process, or can't for now. */
  record(source: string, until: number): Promise<void>;
}

type Attempts = { wrong: number; since: number; lockedUntil: number };

export function createAttemptLimiter(
  { clock, lockouts }: { readonly clock: Clock; readonly lockouts: Lockouts },
  limits = defaultAttemptLimits,
): AttemptLimiter {
  const sources = new Map<string, Promise<Attempts>>();
  const begin = async (source: string): Promise<Attempts> => ({
    wrong: 0,
    since: clock.now(),
    lockedUntil: (await lockouts.find(source)) ?? 0,
  });
  const attemptsOf = (source: string): Promise<Attempts> => {
    const known = sources.get(source);
    if (known !== undefined) return known;
    const oldest = sources.keys().next();
    if (sources.size >= limits.maxSources && !oldest.done) sources.delete(oldest.value);
    const begun = begin(source);
    sources.set(source, begun);
    return begun;
  };
  return {
    attempt: async (source, isRight) => {
      if (isRight()) return { kind: 'right' };
      const attempts = await attemptsOf(source);
      // From here on in one step: attempts that come at once are counted one after the other.
      const now = clock.now();
      if (attempts.lockedUntil > now) return { kind: 'limited', retryAfterMs: attempts.lockedUntil - now };
      if (now - attempts.since >= limits.windowMs) Object.assign(attempts, { wrong: 0, since: now });
      attempts.wrong += 1;
      if (attempts.wrong >= limits.perSource) {
        Object.assign(attempts, { wrong: 0, since: now, lockedUntil: now + limits.windowMs });
        await lockouts.record(source, attempts.lockedUntil);
      }
      return { kind: 'wrong' };
    },
  };
}
