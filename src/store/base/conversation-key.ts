import type { ReplyRoute } from '#contracts/route.ts';

/** `<channel>/<account>`: a bot account in the store. */
export function accountKeyOf(route: Pick<ReplyRoute, 'channel' | 'account'>): string {
  return `${segment(route.channel)}/${segment(route.account)}`;
}

/** `<channel>/<account>/<conversation>`: the unit of delivery order. Threads share their conversation's. */
export function conversationKeyOf(route: Pick<ReplyRoute, 'channel' | 'account' | 'conversation'>): string {
  return `${accountKeyOf(route)}/${segment(route.conversation)}`;
}

function segment(value: string): string {
  return /[%/]/.test(value) ? encodeURIComponent(value) : value;
}
