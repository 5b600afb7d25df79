import { accountId, channelId, conversationId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

/** `<channel>/<account>`: a bot account in the store. */
export function accountKeyOf(route: Pick<ReplyRoute, 'channel' | 'account'>): string {
  return `${segment(route.channel)}/${segment(route.account)}`;
}

/** `<channel>/<account>/<conversation>`: the unit of delivery order. Threads share their conversation's. */
export function conversationKeyOf(route: Pick<ReplyRoute, 'channel' | 'account' | 'conversation'>): string {
  return `${accountKeyOf(route)}/${segment(route.conversation)}`;
}

/** The route to a conversation by its key; it names no thread and no message. */
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
