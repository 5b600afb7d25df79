/** Looks into what Discord sent, before or without a schema: nothing has to be there. */
import { UnparsedJson } from '#channel-kit/unparsed-json.ts';
import { isSnowflake } from './ids.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object; an empty one for anything else. Of what was left unparsed, what is known of it. */
export function fieldsOf(value: unknown): Fields {
  if (value instanceof UnparsedJson) return value.fields;
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

/** An id among the fields as it came; empty when there is none, or it is no text and no number. */
export function idIn(value: unknown, name = 'id'): string {
  const id = fieldsOf(value)[name];
  return typeof id === 'string' || typeof id === 'number' ? String(id) : '';
}

/** The id of an object as a snowflake, `0` when it has none: before every other one. */
export function snowflakeOf(value: unknown): string {
  const id = idIn(value);
  return isSnowflake(id) ? id : '0';
}
