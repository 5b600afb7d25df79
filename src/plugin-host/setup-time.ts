/** How long a plugin may take to load, and to set itself up, ms. */
export const setupTimeMs = 10_000;

/** Resolves with 'late' when the work isn't done in time; what it does later is the caller's to drop. */
export async function withinSetupTime<T>(
  work: T | Promise<T>,
  ms: number = setupTimeMs,
): Promise<T | 'late'> {
  const late = Promise.withResolvers<'late'>();
  const timer = setTimeout(late.resolve, ms, 'late' as const);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
