import type { Capabilities } from '#contracts/capabilities.ts';

/** Signal itself has no limit for text: one over 2000 bytes travels as a file and is joined again. */
export const capabilities: Capabilities = {
  text: { maxLength: 4000 },
  media: { maxBytes: 100_000_000 },
  caption: { maxLength: 4000 },
  canReact: true,
  canQuote: true,
  canEdit: true,
  canDelete: true,
  canPress: false,
  // People see every version of an edited message, and ten edits are the maximum.
  preview: { dm: 'none', group: 'none' },
  previewIntervalMs: { dm: 1000, group: 1000 },
  isSessionBound: false,
  repeatSafeMs: 0,
};
