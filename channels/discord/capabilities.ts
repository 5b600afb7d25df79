import type { Capabilities } from '#contracts/capabilities.ts';
import { toMarkdown } from './markup.ts';

/** API v10. */
export const capabilities: Capabilities = {
  text: { maxLength: 2000, nativeLength: (text) => toMarkdown(text).length },
  caption: { maxLength: 2000 },
  canEdit: true,
  canDelete: true,
  canReact: true,
  canPress: true,
  preview: { dm: 'edit', group: 'edit' },
  // Discord says in its answers how many edits are left (5 in 5 s so far); what is beyond is skipped.
  previewIntervalMs: { dm: 1500, group: 1500 },
  isSessionBound: false,
  // `enforce_nonce` works "for the past few minutes".
  repeatSafeMs: 120_000,
  whileAway:
    'Messages that came while Parley was away are read from the history of each conversation on return, for up to a week. Edits, deletions, reactions and slash commands of that time are lost, and so are first messages of people who never wrote to the bot before.',
};
