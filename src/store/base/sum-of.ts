import { type AliasedRawBuilder, sql } from 'kysely';

/** Sums a column of whole numbers, under its name: 0 without rows, and a number on both databases. */
export function sumOf<Column extends string>(column: Column): AliasedRawBuilder<number, Column> {
  return sql<number>`cast(coalesce(sum(${sql.ref(column)}), 0) as bigint)`.as(column);
}
