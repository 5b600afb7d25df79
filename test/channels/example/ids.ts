import { accountId, channelId, conversationId, threadId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

export const exampleChannel = channelId('example');

/** Makes a route. This is the only place that does, so that no conversation can have two spellings. */
export function routeOf(account: string, room: string, thread?: string): ReplyRoute {
  const route = { channel: exampleChannel, account: accountId(account), conversation: conversationId(room) };
  return thread === undefined ? route : { ...route, thread: threadId(thread) };
}
