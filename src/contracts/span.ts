import { z } from 'zod';

const range = { start: z.int().nonnegative(), length: z.int().positive() };
const span = z.union([
  z.object({
    kind: z.enum(['bold', 'italic', 'underline', 'strikethrough', 'spoiler', 'code', 'quote']),
    ...range,
  }),
  z.object({ kind: z.literal('link'), ...range, url: z.string() }),
  z.object({ kind: z.literal('code-block'), ...range, language: z.string().exactOptional() }),
]);
/** Schema of a text's formatting. */
export const spansSchema = z.array(span).readonly();

/** One formatted range of a text, in UTF-16 code units. */
export type Span = Readonly<z.output<typeof span>>;

/** Kinds of formatting that need no further data. */
export type PlainSpanKind = Exclude<Span['kind'], 'link' | 'code-block'>;
