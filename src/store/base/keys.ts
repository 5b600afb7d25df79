import crypto from 'node:crypto';
import { accountId, channelId, conversationId } from '#contracts/ids.ts';
import type { LaneClass } from '#contracts/lane-class.ts';
import type { QueueSettings } from '#contracts/queue-settings.ts';
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

/** A lane as configured; used when the row is new, or where nothing overrides it. */
export type LaneSpec = {
  readonly key: string;
  readonly class: LaneClass;
  readonly agentId: string;
  readonly chatKind: 'dm' | 'group';
  readonly settings: QueueSettings;
  /** Id of the session to begin, should one be needed. */
  readonly newSessionId: string;
  /** A new session begins if the last activity was before this time (reset policy). */
  readonly resetBefore?: number;
};

/** A lane named only by its key must exist; one that is described is made if needed. */
export type LaneRef = LaneSpec | { readonly key: string };

/**
 * Returns a new id for a row. It begins with the time (RFC 9562, version 7), so that rows written together are adjacent
 * in every index of such ids, however long the history. It isn't secret: values that must not be guessed are made with
 * `randomUUID`.
 */
export function newRowId(): string {
  // Only later minor versions of Node.js 24 have it.
  return crypto.randomUUIDv7?.() ?? crypto.randomUUID();
}
