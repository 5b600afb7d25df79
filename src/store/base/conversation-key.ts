import { accountId, channelId, conversationId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

/** Returns `<channel>/<account>`, the key of a bot account in the store. */
export function accountKeyOf(route: Pick<ReplyRoute, 'channel' | 'account'>): string {
  return `${segment(route.channel)}/${segment(route.account)}`;
}

/** Returns `<channel>/<account>/<conversation>`, the unit of delivery order. Threads share their conversation's key. */
export function conversationKeyOf(route: Pick<ReplyRoute, 'channel' | 'account' | 'conversation'>): string {
  return `${accountKeyOf(route)}/${segment(route.conversation)}`;
}

/** Returns the route to the conversation with this key, without a thread or a message. */
export function routeOfKey(key: string): Pick<ReplyRoute, 'channel' | 'account' | 'conversation'> {
  const [channel = '', account = '', conversation = ''] = key.split('/').map(decodeURIComponent);
  return {
    channel: channelId(channel),
    account: accountId(account),
    conversation: conversationId(conversation),
  };
}

function segment(value: string): string {
  return /[%/]/.test(value) ? encodeURIComponent(value) : value;
}
