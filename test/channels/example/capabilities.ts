import type { Capabilities } from '#contracts/capabilities.ts';

export const exampleCapabilities: Capabilities = {
  text: { maxLength: 500 },
  media: { maxBytes: 10_000 },
  caption: { maxLength: 500 },
  canReact: true,
  canQuote: true,
  canEdit: true,
  canDelete: true,
  canPress: false,
  preview: { dm: 'edit', group: 'edit' },
  previewIntervalMs: { dm: 1000, group: 1000 },
  isSessionBound: false,
  // The network has no key for sends, so a send whose answer is lost stays unknown.
  repeatSafeMs: 0,
};
