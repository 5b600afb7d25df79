import { z } from 'zod';

/**
 * Text with formatting as ranges, the one form between the model's Markdown and a network's native
 * markup. Offsets and lengths are UTF-16 code units (JavaScript string indices), as on Telegram and Signal.
 */
export type FormattedText = {
  readonly text: string;
  readonly spans: readonly Span[];
};

/** Text without formatting. */
export function plainText(text: string): FormattedText {
  return { text, spans: [] };
}

const range = { start: z.int().nonnegative(), length: z.int().positive() };
const plain = z.object({
  kind: z.enum(['bold', 'italic', 'underline', 'strikethrough', 'spoiler', 'code', 'quote']),
  ...range,
  /** The level of a heading, which networks show as bold text. */
  level: z.int().min(1).max(6).exactOptional(),
});
const link = z.object({ kind: z.literal('link'), ...range, url: z.string() });
const cell = z.object({ text: z.string(), spans: z.array(z.union([plain, link])).readonly() });
/** A table, which networks show as aligned text, for a client that can draw it. */
const table = z.object({
  align: z.array(z.enum(['left', 'right', 'center']).nullable()).readonly(),
  /** The header first. */
  rows: z.array(z.array(cell).readonly()).readonly(),
  /** This many lines after the block list the addresses of links in cells. */
  notes: z.int().nonnegative(),
});
const codeBlock = z.object({
  kind: z.literal('code-block'),
  ...range,
  language: z.string().exactOptional(),
  table: table.exactOptional(),
});
/** Schema of a text's formatting. */
export const spansSchema = z.array(z.union([plain, link, codeBlock])).readonly();

/** One formatted range of a text, in UTF-16 code units. */
export type Span = Readonly<z.output<typeof spansSchema>[number]>;

/** A table whose cells keep their emphasis and links. */
export type SpanTable = Readonly<z.output<typeof table>>;

/** Kinds of formatting that need no further data. */
export type PlainSpanKind = Exclude<Span['kind'], 'link' | 'code-block'>;
