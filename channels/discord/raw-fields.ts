/** Reads Discord's data before or without a schema, so any field may be missing. */

import { z } from 'zod';
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

/**
 * Schemas for fields that a message can do without: a value that is null, absent or of another kind counts as absent,
 * and one that is too long is cut. Only what access depends on may make a message unreadable.
 */
/** Text of at most `max` UTF-16 code units; a number is text, too. */
export function softText(max: number) {
  return z
    .union([z.string(), z.number()])
    .transform((text) => String(text).slice(0, max))
    .optional()
    .catch(undefined);
}

export const softId = z.string().refine(isSnowflake).optional().catch(undefined);

export const softInt = z.int().optional().catch(undefined);

/** True only for `true`. */
export const softFlag = z
  .unknown()
  .optional()
  .transform((value) => value === true);

export function soft<Schema extends z.ZodType>(schema: Schema) {
  return schema.optional().catch(undefined);
}

/** A list without the elements that can't be read; empty for anything but a list. */
export function softList<Schema extends z.ZodType>(element: Schema, max: number) {
  return z
    .unknown()
    .optional()
    .transform((value): readonly z.output<Schema>[] =>
      (Array.isArray(value) ? value.slice(0, max) : []).flatMap((each: unknown) => {
        const read = element.safeParse(each);
        return read.success ? [read.data] : [];
      }),
    );
}
