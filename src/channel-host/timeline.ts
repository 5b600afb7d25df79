import { resolve } from 'node:path';
import { sizeOf } from '#channel-kit/send-result.ts';
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
  /** Where files that were sent are kept. */
  readonly mediaDir: string;
  /** Removes secrets, which the words of a model's provider may contain. */
  redact(text: string): string;
};

/** Creates the timeline of a channel's conversations; `laneKeyFor` returns the session of a route. */
export function createTimeline(
  deps: TimelineDeps,
  laneKeyFor: (route: ReplyRoute) => string,
): TimelineReader {
  const { store, feed, restoreMark } = deps;
  return {
    sessionOf: (route) => laneKeyFor(route) + restoreMark,
    read: (route, options) => readItems(deps, { laneKey: laneKeyFor(route), ...options }),
    standing: (route) => store.read(readActivity, { laneKey: laneKeyFor(route) }),
    watch: (route, onEvent, signal) => feed.watch(laneKeyFor(route), onEvent, signal),
  };
}

/** Reads a lane's messages as clients show them. */
export async function readItems(
  { store, redact, mediaDir }: Pick<TimelineDeps, 'store' | 'redact' | 'mediaDir'>,
  request: TimelineRequest,
): Promise<readonly TimelineItem[]> {
  const items = await store.read(readTimeline, request);
  const shown = items.map(withoutScaffolding).map((item) => withCleanReason(item, redact));
  return Promise.all(shown.map((item) => withFileSize(item, mediaDir)));
}

/** A copy that is no longer kept has no size. */
async function withFileSize(item: TimelineItem, mediaDir: string): Promise<TimelineItem> {
  if (item.file === undefined) return item;
  const sizeBytes = await sizeOf(resolve(mediaDir, item.file.stored));
  return sizeBytes === undefined ? item : { ...item, file: { ...item.file, sizeBytes } };
}

/** An answer is copied without what was never said, such as reasoning in tags. */
function withoutScaffolding({ markdown, ...item }: TimelineItem): TimelineItem {
  const said = markdown === undefined ? '' : readableText(markdown, ['chat']);
  return said === '' || said === item.text ? item : { ...item, markdown: said };
}

/** Longest reason that is shown, in UTF-16 units; `why` has all of it. */
const maxReason = 300;

function withCleanReason({ reason, ...item }: TimelineItem, redact: TimelineDeps['redact']): TimelineItem {
  if (reason === undefined) return item;
  const clean = stripText(redact(reason)).replace(/\s+/g, ' ').trim();
  return { ...item, reason: clean.slice(0, maxReason).toWellFormed() };
}
