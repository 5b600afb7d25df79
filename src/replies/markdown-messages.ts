import type { FormattedText } from '#contracts/formatted-text.ts';

/** What the loop and the thread that parses tell each other. */
export type DeskRequest = { readonly id: number; readonly markdown: string };

export type DeskReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'formatted'; readonly id: number; readonly formatted: FormattedText };
