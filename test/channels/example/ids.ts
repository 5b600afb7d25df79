import { accountId, channelId, conversationId, threadId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

export const exampleChannel = channelId('example');

/** The only place that makes routes, so that two spellings of one conversation cannot arise. */
export function routeOf(account: string, room: string, thread?: string): ReplyRoute {
  const route = { channel: exampleChannel, account: accountId(account), conversation: conversationId(room) };
  return thread === undefined ? route : { ...route, thread: threadId(thread) };
}
