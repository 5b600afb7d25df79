import { accountId, channelId, conversationId, messageId, threadId } from '#contracts/ids.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import { chunkFormatted } from '../../src/replies/chunk.ts';
import type { ToolSend } from '../../src/replies/dedupe.ts';
import { formatMarkdown } from '../../src/replies/markdown.ts';
import { decideReply, planReply, type ReplyInput, type ReplyPlan } from '../../src/replies/reply-pipeline.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';

export function aRoute(over: { conversation?: string; thread?: string; replyTo?: string } = {}): ReplyRoute {
  return {
    channel: channelId('net'),
    account: accountId('bot'),
    conversation: conversationId(over.conversation ?? 'here'),
    ...(over.thread === undefined ? {} : { thread: threadId(over.thread) }),
    ...(over.replyTo === undefined ? {} : { replyTo: messageId(over.replyTo) }),
  };
}

export function aToolSend(over: Partial<ToolSend> = {}): ToolSend {
  return { tool: 'message', state: 'sent', route: aRoute(), text: '', media: [], ...over };
}

export function aReply(over: Partial<ReplyInput> = {}): ReplyInput {
  return {
    text: 'Hello',
    toolSends: [],
    route: aRoute({ replyTo: '41' }),
    chatKind: 'dm',
    capabilities: { text: { maxLength: 4096 }, canReact: true },
    silenceContext: ['chat'],
    replyToMode: 'off',
    texts: textsFor('en'),
    ...over,
  };
}

/** Decides and plans a reply as a run does. */
export function shapeReply(input: ReplyInput): ReplyPlan {
  const reply = decideReply(input);
  const { decided } = reply;
  const texts =
    decided.kind === 'text' ? chunkFormatted(formatMarkdown(decided.text), input.capabilities.text) : [];
  return planReply(input, reply, texts);
}
