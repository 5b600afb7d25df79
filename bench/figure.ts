/** One line of a comparison. */
export type Figure = {
  readonly name: string;
  readonly unit: string;
  readonly parley: number;
  /** Absent where the floor has no counterpart. */
  readonly floor?: number;
  /** For the reader, never asserted. */
  readonly target: string;
};

/** Returns the table of a part's figures. */
export function figureRows(figures: readonly Figure[]) {
  return { heads: ['figure', 'floor', 'Parley', 'ratio', 'target'], rows: figures.map(cellsOf) };
}

function cellsOf({ name, floor, parley, unit, target }: Figure): readonly string[] {
  const withUnit = (value: number | undefined) =>
    value === undefined ? '–' : `${format(value)}${unit === '' ? '' : ` ${unit}`}`;
  const ratio = floor === undefined || floor === 0 ? '–' : `${(parley / floor).toFixed(2)} ×`;
  return [name, withUnit(floor), withUnit(parley), ratio, target];
}

function format(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}
