import type { AccountId, ChannelId, ConversationId, MessageId, ThreadId } from './ids.ts';

/**
 * Where the answer to a message goes. Taken from the platform event at ingress and never changed:
 * nothing later (session state, a failed send, another channel) may rewrite it.
 */
export type ReplyRoute = {
  readonly channel: ChannelId;
  readonly account: AccountId;
  readonly conversation: ConversationId;
  readonly thread?: ThreadId;
  /** The message an answer may quote. Not part of the route's identity. */
  readonly replyTo?: MessageId;
};

/** Two routes are one when they lead to the same place, whatever message they quote. */
export function isSameRoute(a: ReplyRoute, b: ReplyRoute): boolean {
  return (
    a.channel === b.channel &&
    a.account === b.account &&
    a.conversation === b.conversation &&
    a.thread === b.thread
  );
}
