import type { ChannelId, ConversationId, PeerId } from '#contracts/ids.ts';

/**
 * How configuration names a person, group or guild of one network: `telegram:123`. Made of the
 * immutable platform id only. Channel ids hold no `:`, so two references are never one string.
 */
export function platformRef(channel: ChannelId, id: PeerId | ConversationId): string {
  return `${channel}:${id}`;
}
