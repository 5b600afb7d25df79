import { type RawBuilder, sql } from 'kysely';
import type { Tx } from './command.ts';

/**
 * Returns operator and operand of "is one of the texts of a JSON list", so that the query text doesn't depend on their
 * number. PostgreSQL assumes few elements in an array and looks them up; for a set it assumes a hundred and scans a
 * table of a few thousand rows.
 */
export function oneOf(
  list: RawBuilder<string>,
  dialect: Tx['dialect'],
): readonly ['=' | 'in', RawBuilder<string>] {
  return dialect === 'postgres'
    ? ['=', sql<string>`any(array(select json_array_elements_text(${list}::json)))`]
    : ['in', sql<string>`(select "value" from json_each(${list}))`];
}
