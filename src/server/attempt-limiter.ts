/**
 * Locks out sources of wrong secrets. A secret is judged before the lock is checked, so the right one always passes
 * immediately, even from a locked address: it is too long to guess in any number of attempts. The lock only hides
 * the verdict from a guesser, and costs nobody else anything.
 */
import type { Clock } from '#contracts/clock.ts';

export interface AttemptLimiter {
  /** Calls `isRight` once, immediately. Never throws because of the lockouts. */
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
  /** Maximum number of remembered sources; the oldest is dropped. */
  readonly maxSources: number;
};

export const defaultAttemptLimits: AttemptLimits = { perSource: 10, windowMs: 60_000, maxSources: 10_000 };

/** Storage in which lockouts outlive the process. Neither method throws. */
export interface Lockouts {
  /** Returns the time until which a source is locked, ms since the epoch. */
  find(source: string): Promise<number | undefined>;
  /** Locks a source from now on; resolves once that is stored, or can't be stored for now. */
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
      // Synchronous from here on, so that concurrent attempts are counted one after another.
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
