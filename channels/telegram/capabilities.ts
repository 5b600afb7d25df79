import type { Capabilities } from '#contracts/capabilities.ts';
import { albumKind } from './file-kind.ts';

/** Limits of Bot API 10.3. */
export const capabilities: Capabilities = {
  text: { maxLength: 4096 },
  media: { maxBytes: 50_000_000, album: { maxFiles: 10, kindOf: albumKind }, voice: { hasCaption: true } },
  caption: { maxLength: 1024 },
  canReact: true,
  showsOneReaction: true,
  canQuote: true,
  canEdit: true,
  canDelete: true,
  canPress: true,
  preview: { dm: 'draft', group: 'edit' },
  // A group allows about 20 edits and sends a minute; more lead to a 429, which would delay the answer itself. So
  // previews take 15.
  previewIntervalMs: { dm: 1000, group: 4000 },
  // Documented as about 30 messages a second; whether drafts and typing count isn't.
  callsPerSecond: 30,
  isSessionBound: false,
  repeatSafeMs: 0,
};
