import type { FormattedText } from '#contracts/formatted-text.ts';

/** Messages between the event loop and the parser thread. */
export type DeskRequest = { readonly id: number; readonly markdown: string };

export type DeskReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'formatted'; readonly id: number; readonly formatted: FormattedText };
