/**
 * Events between processes, through Redis. They are for speed only: any may be lost, and the store shows the same a
 * moment later. The most a Redis client can do is trigger a read, and show a draft on a page.
 */

import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';
import { type FeedEvent, feedEventSchema } from '#contracts/feed.ts';
import { type FormattedText, spansSchema } from '#contracts/formatted-text.ts';
import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { RedisConnections, RedisKeys } from '../redis/connection.ts';

/** A hint from one process to the others; losing one only costs time. */
export type LiveEvent =
  /** The run has a cancel flag, which its holder should read now. */
  | { readonly kind: 'cancel'; readonly runId: string }
  /** A process has died, and everything it held is free. */
  | { readonly kind: 'freed' }
  /** Something waits to be sent in a conversation that the publishing process doesn't serve. */
  | { readonly kind: 'deliver'; readonly conversationKey: string }
  /** An event of a session's feed. */
  | { readonly kind: 'timeline'; readonly laneKey: string; readonly event: FeedEvent }
  /**
   * The publishing process follows a lane for a while and wants all of its events. `isNew`: also what its run has
   * written so far.
   */
  | { readonly kind: 'follow'; readonly laneKey: string; readonly isNew?: true }
  /** An answer in progress, for a channel on which only the account's holder can show it. */
  | {
      readonly kind: 'draft';
      readonly route: ReplyRoute;
      readonly draftId: number;
      readonly text: FormattedText;
    };

/** Carries hints between the processes of one database. */
export interface LiveEvents {
  /** Sends the event to every other process. Never waits and never throws. */
  publish(event: LiveEvent): void;
  /** Calls `onEvent` with other processes' events from now on. */
  listen(onEvent: (event: LiveEvent) => void): void;
  close(): Promise<void>;
}

/** Live events of the only process on its database. */
export const noLiveEvents: LiveEvents = {
  publish: () => undefined,
  listen: () => undefined,
  close: async () => undefined,
};

const id = z.string().min(1).max(2_048);
const route = z.object({
  channel: id,
  account: id,
  conversation: id,
  thread: id.exactOptional(),
  replyTo: id.exactOptional(),
});
const liveEvent = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('cancel'), runId: id }),
  z.object({ kind: z.literal('freed') }),
  z.object({ kind: z.literal('deliver'), conversationKey: id }),
  z.object({ kind: z.literal('timeline'), laneKey: id, event: feedEventSchema }),
  z.object({ kind: z.literal('follow'), laneKey: id, isNew: z.literal(true).exactOptional() }),
  z.object({
    kind: z.literal('draft'),
    route,
    draftId: z.number(),
    text: z.object({ text: z.string(), spans: spansSchema }),
  }),
]);
const letter = z.object({ from: id, events: z.array(z.unknown()) });

/** Opens the channel between processes, over Redis. */
export function createLiveEvents(deps: {
  readonly redis: RedisConnections;
  readonly keys: RedisKeys;
  /** Identifies this process, so that it ignores its own events. */
  readonly holder: string;
  readonly log: Log;
}): LiveEvents {
  const { redis, keys, holder, log } = deps;
  /** Events of one event-loop turn, sent as one message without duplicates. */
  const waiting = new Set<string>();
  let unsubscribe: (() => void) | undefined;

  const flush = () => {
    const events = [...waiting].join(',');
    waiting.clear();
    if (!redis.isReady()) return;
    redis.producer
      .publish(keys.eventsTopic, `{"from":${JSON.stringify(holder)},"events":[${events}]}`)
      .catch((error: unknown) => log.debug({ error }, 'live.lost'));
  };
  return {
    publish: (event) => {
      if (waiting.size === 0) setImmediate(flush);
      waiting.add(JSON.stringify(event));
    },
    listen: (onEvent) => {
      unsubscribe = redis.subscribe(keys.eventsTopic, (message) => {
        const heard = readLetter(message);
        if (heard === undefined) return log.warn({}, 'live.malformed');
        if (heard.from === holder) return;
        for (const event of heard.events.flatMap(readEvent)) onEvent(event);
      });
    },
    close: async () => unsubscribe?.(),
  };
}

function readLetter(message: string): z.output<typeof letter> | undefined {
  try {
    return letter.parse(parseJson(message));
  } catch {
    return undefined;
  }
}

/** Reads each event by itself, so that one of a later version costs nothing but itself. */
function readEvent(event: unknown): readonly LiveEvent[] {
  const read = liveEvent.safeParse(event);
  // The ids had their brands in the process that wrote them.
  return read.success ? [read.data as unknown as LiveEvent] : [];
}
