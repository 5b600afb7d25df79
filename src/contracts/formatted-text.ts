/**
 * Text with formatting as ranges, the one form between the model's Markdown and a network's native
 * markup. Offsets and lengths are UTF-16 code units (JavaScript string indices), as on Telegram and Signal.
 */
export type FormattedText = {
  readonly text: string;
  readonly spans: readonly Span[];
};

/** One formatted range of a text, in UTF-16 code units. */
export type Span =
  | { readonly kind: PlainSpanKind; readonly start: number; readonly length: number }
  | { readonly kind: 'link'; readonly start: number; readonly length: number; readonly url: string }
  | {
      readonly kind: 'code-block';
      readonly start: number;
      readonly length: number;
      readonly language?: string;
    };

/** Kinds of formatting that need no further data. */
export type PlainSpanKind = 'bold' | 'italic' | 'underline' | 'strikethrough' | 'spoiler' | 'code' | 'quote';

/** Text without formatting. */
export function plainText(text: string): FormattedText {
  return { text, spans: [] };
}
