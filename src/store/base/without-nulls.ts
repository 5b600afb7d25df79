/** A row as other folders read it: absence is undefined. */
export type WithoutNulls<Row> = {
  readonly [Name in keyof Row]: null extends Row[Name] ? Exclude<Row[Name], null> | undefined : Row[Name];
};

/** A row of the query that the function builds. */
export type RowOf<Build extends (...args: never[]) => { execute(): Promise<readonly unknown[]> }> = Awaited<
  ReturnType<ReturnType<Build>['execute']>
>[number];

/** Returns the row with undefined in its empty columns. */
export function withoutNulls<Row extends object>(row: Row): WithoutNulls<Row> {
  const columns = Object.entries(row).map(([name, value]) => [name, value ?? undefined]);
  return Object.fromEntries(columns) as WithoutNulls<Row>;
}
