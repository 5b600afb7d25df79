import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares in a time that tells nothing about where, or at what length, the two differ. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}
