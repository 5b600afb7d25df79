/**
 * Schemas for fields that a message can do without: a value that is null, absent or of another kind counts as absent,
 * and one that is too long is cut. Only what access depends on may make a message unreadable.
 */
import { z } from 'zod';
import { isSnowflake } from './ids.ts';

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
