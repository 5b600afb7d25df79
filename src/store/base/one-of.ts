import { type RawBuilder, sql } from 'kysely';
import type { Tx } from './command.ts';

/**
 * Operator and operand of "is one of the texts of a JSON list": the query is the same however many there are.
 * PostgreSQL takes an array for a few, and looks them up; of a set it expects a hundred, and reads a table of some
 * thousands from end to end.
 */
export function oneOf(
  list: RawBuilder<string>,
  dialect: Tx['dialect'],
): readonly ['=' | 'in', RawBuilder<string>] {
  return dialect === 'postgres'
    ? ['=', sql<string>`any(array(select json_array_elements_text(${list}::json)))`]
    : ['in', sql<string>`(select "value" from json_each(${list}))`];
}
