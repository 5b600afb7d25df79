import type { Capabilities } from '#contracts/capabilities.ts';

const maxUploadBytes = 100_000_000;

/** Signal itself has no limit for text: one over 2000 bytes travels as a file and is joined again. */
export const capabilities: Capabilities = {
  text: { maxLength: 4000 },
  // The server takes no voice messages, so they are sent as files.
  media: { maxBytes: maxUploadBytes, album: { maxFiles: 10, maxTotalBytes: maxUploadBytes } },
  caption: { maxLength: 4000 },
  canReact: true,
  showsOneReaction: true,
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
