import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineEvent, TimelineReader } from '#contracts/timeline.ts';
import type { Store } from '../store/command.ts';
import { readTimeline } from '../store/sessions/read-timeline.ts';

/** What is being said, by lane. In this process only; reading the store again is what clients rely on. */
export interface Timelines {
  publish(laneKey: string, event: TimelineEvent): void;
  /** A reader for a channel; `laneKeyFor` says which session a route of it leads to. */
  readerFor(laneKeyFor: (route: ReplyRoute) => string): TimelineReader;
}

type Listener = (event: TimelineEvent) => void;

export function createTimelines({ store, log }: { readonly store: Store; readonly log: Log }): Timelines {
  const listeners = new Map<string, Set<Listener>>();
  return {
    publish: (laneKey, event) => {
      for (const listener of listeners.get(laneKey) ?? []) {
        try {
          listener(event);
        } catch (error) {
          // Whoever watches must not disturb what is watched; the client reads again.
          log.warn({ laneKey, error }, 'timeline.listener-failed');
        }
      }
    },
    readerFor: (laneKeyFor) => ({
      read: (route, options) => store.read(readTimeline, { laneKey: laneKeyFor(route), ...options }),
      watch: (route, onEvent, signal) => {
        if (signal.aborted) return;
        const laneKey = laneKeyFor(route);
        const known = listeners.get(laneKey) ?? new Set();
        listeners.set(laneKey, known.add(onEvent));
        signal.addEventListener('abort', () => {
          known.delete(onEvent);
          if (known.size === 0) listeners.delete(laneKey);
        });
      },
    }),
  };
}
