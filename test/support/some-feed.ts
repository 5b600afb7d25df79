import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineReader } from '#contracts/timeline.ts';
import { createTimeline, type TimelineDeps } from '../../src/channel-host/timeline.ts';
import { createFeed, type Feed, type FeedDeps } from '../../src/queue/feed.ts';
import { noLiveEvents } from '../../src/queue/live-events.ts';
import { silentLog } from './silent-log.ts';
import { createSteppedClock } from './stepped-clock.ts';

/** Returns the feed of the only process on a database. */
export function aFeed(over: Partial<FeedDeps> = {}): Feed {
  return createFeed({ clock: createSteppedClock(), log: silentLog, live: noLiveEvents, ...over });
}

/** Returns a timeline of a database that was never restored. */
export function aTimeline(
  store: TimelineDeps['store'],
  laneKeyFor: (route: ReplyRoute) => string,
  over: Partial<TimelineDeps> = {},
): TimelineReader {
  const redact = (text: string) => text;
  return createTimeline(
    { store, feed: aFeed(), restoreMark: '', redact, mediaDir: '/nonexistent', ...over },
    laneKeyFor,
  );
}
