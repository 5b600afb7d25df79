import type { Capabilities } from '#contracts/capabilities.ts';
import { toMarkdown } from './markup.ts';

const maxUploadBytes = 10 * 1024 * 1024;

/** Limits of API v10. */
export const capabilities: Capabilities = {
  text: { maxLength: 2000, nativeLength: (text) => toMarkdown(text).length },
  // The limit in guilds without a boost; the files of a message share it, so that one request stays small.
  media: {
    maxBytes: maxUploadBytes,
    album: { maxFiles: 10, maxTotalBytes: maxUploadBytes },
    voice: { hasCaption: false },
  },
  caption: { maxLength: 2000 },
  canReact: true,
  canQuote: true,
  canEdit: true,
  canDelete: true,
  canPress: true,
  preview: { dm: 'edit', group: 'edit' },
  // Discord's responses say how many edits are left (currently 5 in 5 s); edits over that limit are skipped.
  previewIntervalMs: { dm: 1500, group: 1500 },
  callsPerSecond: 50,
  isSessionBound: false,
  // `enforce_nonce` covers "the past few minutes".
  repeatSafeMs: 120_000,
};
