import { accountId, channelId, conversationId, messageId, threadId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { ToolSend } from '../../src/replies/dedupe.ts';
import type { ReplyInput } from '../../src/replies/reply-pipeline.ts';
import { noticesFor } from '../../src/texts/notices.ts';

export function aRoute(over: { conversation?: string; thread?: string; replyTo?: string } = {}): ReplyRoute {
  return {
    channel: channelId('net'),
    account: accountId('bot'),
    conversation: conversationId(over.conversation ?? 'here'),
    ...(over.thread === undefined ? {} : { thread: threadId(over.thread) }),
    ...(over.replyTo === undefined ? {} : { replyTo: messageId(over.replyTo) }),
  };
}

export function aReceipt(over: Partial<ToolSend> = {}): ToolSend {
  return { tool: 'message', state: 'sent', route: aRoute(), text: '', media: [], ...over };
}

export function aReply(over: Partial<ReplyInput> = {}): ReplyInput {
  return {
    text: 'Hello',
    receipts: [],
    route: aRoute({ replyTo: '41' }),
    chatKind: 'dm',
    capabilities: { text: { maxLength: 4096 }, canReact: true },
    silenceContext: 'chat',
    replyToMode: 'off',
    notices: noticesFor('en'),
    ...over,
  };
}
