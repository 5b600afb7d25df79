import type { Clock } from '#contracts/clock.ts';

/**
 * Bounds how many wrong secrets are looked at. An attempt is counted and judged in one synchronous
 * step, so concurrent tries cannot slip in between; past the limit not even a right one is judged.
 */
export interface AttemptLimiter {
  attempt(source: string, isRight: () => boolean): Attempt;
}

export type Attempt = { readonly kind: 'right' } | { readonly kind: 'wrong' } | { readonly kind: 'limited' };

export type AttemptLimits = {
  readonly perSource: number;
  /** Over all sources, so that many addresses do not multiply the tries. */
  readonly inTotal: number;
  readonly windowMs: number;
};

export const defaultAttemptLimits: AttemptLimits = { perSource: 10, inTotal: 60, windowMs: 60_000 };

export function createAttemptLimiter(clock: Clock, limits = defaultAttemptLimits): AttemptLimiter {
  let wrongTries: readonly { readonly source: string; readonly at: number }[] = [];
  return {
    attempt: (source, isRight) => {
      const since = clock.now() - limits.windowMs;
      // At most `inTotal` entries are ever kept, so this stays small under a flood.
      wrongTries = wrongTries.filter((wrong) => wrong.at > since);
      const own = wrongTries.filter((wrong) => wrong.source === source).length;
      if (own >= limits.perSource || wrongTries.length >= limits.inTotal) return { kind: 'limited' };
      if (isRight()) return { kind: 'right' };
      wrongTries = [...wrongTries, { source, at: clock.now() }];
      return { kind: 'wrong' };
    },
  };
}
