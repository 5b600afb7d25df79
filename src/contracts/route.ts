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
  /** Set when a run begins: something else was said in the conversation after that message. */
  readonly isBehind?: true;
};

/** Where a run's answers go: along a route, or only on record, as transcript and result. */
export type RunTarget = ReplyRoute | 'record';

/** Returns the target's route; undefined for one that is only on record. */
export function routeOf(target: RunTarget): ReplyRoute | undefined {
  return target === 'record' ? undefined : target;
}

/** Returns the same route without quoting a message. */
export function withoutQuote({ replyTo: _, isBehind: __, ...route }: ReplyRoute): ReplyRoute {
  return route;
}

/** Whether answers to both end up in the same place; see `isSameRoute`. */
export function isSameTarget(a: RunTarget, b: RunTarget): boolean {
  return a === 'record' || b === 'record' ? a === b : isSameRoute(a, b);
}

/** Whether both routes lead to the same place, whatever message they quote. */
export function isSameRoute(a: ReplyRoute, b: ReplyRoute): boolean {
  return (
    a.channel === b.channel &&
    a.account === b.account &&
    a.conversation === b.conversation &&
    a.thread === b.thread
  );
}
