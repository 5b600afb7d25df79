/** One line of the result. */
export type Figure = {
  readonly name: string;
  readonly unit: string;
  readonly parley: number;
  /** Absent where the floor has nothing to compare with. */
  readonly floor?: number;
  /** In words; for the reader, never asserted. */
  readonly target: string;
};

export function ratioOf({ parley, floor }: Figure): number | undefined {
  return floor === undefined || floor === 0 ? undefined : parley / floor;
}
