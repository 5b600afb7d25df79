import { accountId, channelId, conversationId, peerId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';

export const terminalChannel = channelId('terminal');
/** One account and one person: who may open the socket is the owner of its file. */
export const terminalAccount = accountId('terminal');
export const terminalOwner = peerId('owner');

/** Each chat is a conversation of its own; `parley chat` opens `main`. */
export function terminalRoute(conversation: string): ReplyRoute {
  return { channel: terminalChannel, account: terminalAccount, conversation: conversationId(conversation) };
}
