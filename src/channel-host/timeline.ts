import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineItem, TimelineReader } from '#contracts/timeline.ts';
import { stripText } from '../logging/redaction.ts';
import type { Feed } from '../queue/feed.ts';
import { readableText } from '../replies/reply-pipeline.ts';
import type { Store } from '../store/base/command.ts';
import { readActivity } from '../store/reads/read-activity.ts';
import { readTimeline, type TimelineRequest } from '../store/reads/read-timeline.ts';

export type TimelineDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly feed: Pick<Feed, 'watch'>;
  /** From `readRestoreMark`: positions are only valid within a session between two restores. */
  readonly restoreMark: string;
  /** Removes secrets, which the words of a model's provider may contain. */
  redact(text: string): string;
};

/** Creates the timeline of a channel's conversations; `laneKeyFor` returns the session of a route. */
export function createTimeline(
  { store, feed, restoreMark, redact }: TimelineDeps,
  laneKeyFor: (route: ReplyRoute) => string,
): TimelineReader {
  return {
    sessionOf: (route) => laneKeyFor(route) + restoreMark,
    read: (route, options) => readItems({ store, redact }, { laneKey: laneKeyFor(route), ...options }),
    standing: (route) => store.read(readActivity, { laneKey: laneKeyFor(route) }),
    watch: (route, onEvent, signal) => feed.watch(laneKeyFor(route), onEvent, signal),
  };
}

/** Reads a lane's messages as clients show them. */
export async function readItems(
  { store, redact }: Pick<TimelineDeps, 'store' | 'redact'>,
  request: TimelineRequest,
): Promise<readonly TimelineItem[]> {
  const items = await store.read(readTimeline, request);
  return items.map(withoutScaffolding).map((item) => withCleanReason(item, redact));
}

/** An answer is copied without what was never said, such as reasoning in tags. */
function withoutScaffolding({ markdown, ...item }: TimelineItem): TimelineItem {
  const said = markdown === undefined ? '' : readableText(markdown, 'chat');
  return said === '' || said === item.text ? item : { ...item, markdown: said };
}

/** Longest reason that is shown, in UTF-16 units; `why` has all of it. */
const maxReason = 300;

function withCleanReason({ reason, ...item }: TimelineItem, redact: TimelineDeps['redact']): TimelineItem {
  if (reason === undefined) return item;
  const clean = stripText(redact(reason)).replace(/\s+/g, ' ').trim();
  return { ...item, reason: clean.slice(0, maxReason).toWellFormed() };
}
