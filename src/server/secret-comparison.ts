import { createHash, timingSafeEqual } from 'node:crypto';

/** Compares two secrets in a time that reveals nothing about where, or at what length, they differ. */
export function isSameSecret(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(value: string): Buffer {
  return createHash('sha256').update(value).digest();
}
