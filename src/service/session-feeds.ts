/**
 * The feeds of sessions, for readers outside of this process. Readers of one session share one view of its lane, so the
 * store is read no more often for a thousand readers than for one.
 */
import type { FeedBatch } from './feed-batch.ts';
import type { FeedPlace } from './feed-place.ts';
import { type FeedFilter, FeedReader } from './feed-reader.ts';
import { LaneView, type LaneViewDeps } from './lane-view.ts';

/** The session to follow, from where, and what of it. */
export type FeedRequest = FeedFilter & {
  readonly laneKey: string;
  /** Where an earlier reader has got to; absent: begin with the present. */
  readonly place?: FeedPlace | undefined;
};

/** The feeds that this process serves. */
export interface SessionFeeds {
  /** Names the session of positions: they start over after a restore. */
  readonly restoreMark: string;
  /**
   * Opens a feed that ends with the signal, or with the run that it follows. Undefined: there are too many readers. A
   * reader that takes batches slowly gets snapshots, never an error.
   */
  open(request: FeedRequest, signal: AbortSignal): AsyncIterable<FeedBatch> | undefined;
}

/** Readers of a process; each takes up to a megabyte while it is slow. */
const defaultReaders = 1_000;

/** Creates the feeds; each session is read only while somebody follows it. */
export function createSessionFeeds(
  deps: LaneViewDeps & { readonly restoreMark: string; readonly maxReaders?: number },
): SessionFeeds {
  const { restoreMark, maxReaders = defaultReaders } = deps;
  const views = new Map<string, LaneView>();
  let readers = 0;
  const leave = (laneKey: string, view: LaneView, reader: FeedReader) => {
    readers -= 1;
    view.remove(reader);
    if (view.size > 0) return;
    views.delete(laneKey);
    view.close();
  };
  return {
    restoreMark,
    open: ({ laneKey, place, kinds, run }, signal) => {
      if (readers >= maxReaders || signal.aborted) return undefined;
      const view = views.get(laneKey) ?? new LaneView(deps, { laneKey, restoreMark });
      views.set(laneKey, view);
      const reader = new FeedReader({ kinds, run }, { place, signal, askForSnapshot: view.touch });
      readers += 1;
      view.add(reader);
      signal.addEventListener('abort', () => leave(laneKey, view, reader), { once: true });
      return reader;
    },
  };
}
