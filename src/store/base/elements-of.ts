import { type RawBuilder, sql } from 'kysely';
import type { Tx } from './command.ts';

/** The texts of a JSON list, for `in`: the query is the same however many there are. */
export function elementsOf(list: RawBuilder<string>, dialect: Tx['dialect']): RawBuilder<string> {
  return dialect === 'postgres'
    ? sql<string>`(select json_array_elements_text(${list}::json))`
    : sql<string>`(select "value" from json_each(${list}))`;
}
