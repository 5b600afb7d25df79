import { maxTextLength } from '#channel-kit/client-frames.ts';
import type { Capabilities } from '#contracts/capabilities.ts';

export const webCapabilities: Capabilities = {
  text: { maxLength: maxTextLength },
  canEdit: true,
  canDelete: true,
  canReact: false,
  preview: { dm: 'draft', group: 'none' },
  previewIntervalMs: { dm: 60, group: 60 },
  isSessionBound: true,
  // The timeline holds a part under its key, so a repeated send changes nothing.
  repeatSafeMs: Number.MAX_SAFE_INTEGER,
  whileAway:
    'The browser keeps unsent messages and sends them when Parley is back; answers are kept in the timeline.',
};
