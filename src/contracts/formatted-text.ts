import type { Span } from './span.ts';

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
