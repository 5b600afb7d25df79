import type { ChannelId, ConversationId, PeerId } from '#contracts/ids.ts';

/**
 * Returns the reference by which the configuration names a person, group or guild of a network, such as `telegram:123`.
 * It is built from the immutable platform id only. Channel ids contain no `:`, so references never collide.
 */
export function platformRef(channel: ChannelId, id: PeerId | ConversationId): string {
  return `${channel}:${id}`;
}
