import type { Capabilities } from '#contracts/capabilities.ts';
import { toMarkdown } from './markup.ts';

/** API v10. */
export const capabilities: Capabilities = {
  text: { maxLength: 2000, nativeLength: (text) => toMarkdown(text).length },
  // Without a boost; larger uploads are refused by Discord itself where they are.
  media: { maxBytes: 10 * 1024 * 1024 },
  caption: { maxLength: 2000 },
  canReact: true,
  canQuote: true,
  canEdit: true,
  canDelete: true,
  canPress: true,
  preview: { dm: 'edit', group: 'edit' },
  // Discord says in its answers how many edits are left (5 in 5 s so far); what is beyond is skipped.
  previewIntervalMs: { dm: 1500, group: 1500 },
  isSessionBound: false,
  // `enforce_nonce` works "for the past few minutes".
  repeatSafeMs: 120_000,
};
