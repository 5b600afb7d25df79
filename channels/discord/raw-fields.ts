/** Reads Discord's data before or without a schema, so any field may be missing. */
import { UnparsedJson } from '#channel-kit/unparsed-json.ts';
import { isSnowflake } from './ids.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Returns the value as an object, or an empty one for anything else; of unparsed JSON, the fields that are known. */
export function fieldsOf(value: unknown): Fields {
  if (value instanceof UnparsedJson) return value.fields;
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** Returns an id among the fields as it came; empty if it is missing, or is neither text nor a number. */
export function idIn(value: unknown, name = 'id'): string {
  const id = fieldsOf(value)[name];
  return typeof id === 'string' || typeof id === 'number' ? String(id) : '';
}

/** Returns the id of an object as a snowflake; if it has none, `0`, which is earlier than any other. */
export function snowflakeOf(value: unknown): string {
  const id = idIn(value);
  return isSnowflake(id) ? id : '0';
}
