/** Megabytes, as people write them, in whole bytes: 1.1 × 1e6 is a little more than 1,100,000. */
export function bytesOf(megabytes: number): number {
  return Math.round(megabytes * 1_000_000);
}
