import type { Capabilities } from '#contracts/capabilities.ts';

/** Capabilities of a network that can only send text. */
export const plainCapabilities: Capabilities = {
  text: { maxLength: 1000 },
  canReact: false,
  canQuote: false,
  canEdit: false,
  canDelete: false,
  canPress: false,
  preview: { dm: 'none', group: 'none' },
  previewIntervalMs: { dm: 1000, group: 1000 },
  isSessionBound: false,
  repeatSafeMs: 0,
};
