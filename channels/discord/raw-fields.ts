/** Reads Discord's data before or without a schema, so any field may be missing. */

import { z } from 'zod';
import type { OversizedJson } from '#channel-kit/read-json.ts';
import { isLater, isSnowflake } from './ids.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Returns the value as an object, or an empty one for anything else. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** Returns an id among the fields as it came; empty if it is missing, or is neither text nor a number. */
export function idIn(value: unknown, name = 'id'): string {
  const id = fieldsOf(value)[name];
  return typeof id === 'string' || typeof id === 'number' ? String(id) : '';
}

/**
 * Returns the id of a message that is too large to be parsed, `0` without any: the latest in it, since whatever a message
 * names is older. People can't write one, because quotes in their texts are escaped.
 */
export function latestIdIn({ text }: OversizedJson): string {
  const ids = [...text.matchAll(/"id":"(\d{1,20})"/g)].map(([, id = '0']) => id).filter(isSnowflake);
  return ids.reduce((latest, id) => (isLater(id, latest) ? id : latest), '0');
}

/** Returns the id of an object as a snowflake; if it has none, `0`, which is earlier than any other. */
export function snowflakeOf(value: unknown): string {
  const id = idIn(value);
  return isSnowflake(id) ? id : '0';
}

// Schemas for fields that a message can do without: a value that is null, absent or of another kind counts as absent,
// and one that is too long is cut. Only what access depends on may make a message unreadable.

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
