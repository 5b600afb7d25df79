import { accountId, channelId, conversationId, peerId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

export const webChannel = channelId('web');
/** The page has one account and one person: a signed-in person is the owner. */
export const webAccount = accountId('web');
export const webOwner = peerId('owner');

/** Each chat of the page is a conversation of its own; the page opens `main`. */
export function webRoute(conversation: string): ReplyRoute {
  return { channel: webChannel, account: webAccount, conversation: conversationId(conversation) };
}
