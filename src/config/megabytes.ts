/** Converts megabytes, as people write them, to whole bytes; rounded, since 1.1 × 1e6 is slightly over 1,100,000. */
export function bytesOf(megabytes: number): number {
  return Math.round(megabytes * 1_000_000);
}
