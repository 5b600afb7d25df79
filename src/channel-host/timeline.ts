import type { Log } from '#contracts/log.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { TimelineEvent, TimelineItem, TimelineReader } from '#contracts/timeline.ts';
import { stripText } from '../logging/redaction.ts';
import type { LiveEvents } from '../queue/live-events.ts';
import { readableText } from '../replies/reply-pipeline.ts';
import { topLaneOf } from '../sessions/session-key.ts';
import type { Store } from '../store/base/command.ts';
import { readActivity } from '../store/reads/read-activity.ts';
import { readTimeline } from '../store/reads/read-timeline.ts';
import { readParked } from '../store/waits/parked.ts';

/** Live events by lane. They may be lost, so clients rely on rereading the store. */
export interface Timelines {
  /** Sends an event to watchers in this process and to other processes. */
  publish(laneKey: string, event: TimelineEvent): void;
  /** Passes an event from another process to watchers in this one. */
  hear(laneKey: string, event: TimelineEvent): void;
  /** Calls back for each change in the lane until the signal aborts. May miss some. */
  watchLane(laneKey: string, onEvent: (event: TimelineEvent) => void, signal: AbortSignal): void;
  /** Calls back whenever the state of any lane may have changed, until the signal aborts. May miss some. */
  watchAll(onChange: () => void, signal: AbortSignal): void;
  /** Creates a reader for a channel; `laneKeyFor` returns the session of a route. */
  readerFor(laneKeyFor: (route: ReplyRoute) => string): TimelineReader;
}

type Listener = (event: TimelineEvent) => void;

/** Never a session key. */
const everyLane = '*';

export type TimelinesDeps = {
  readonly store: Pick<Store, 'read'>;
  readonly log: Log;
  readonly live: Pick<LiveEvents, 'publish'>;
  /** From `readRestoreMark`: positions are only valid within a session between two restores. */
  readonly restoreMark: string;
  /** Removes secrets, which the words of a model's provider may contain. */
  redact(text: string): string;
};

/** Creates the timelines of this process; events from other processes arrive through `live`. */
export function createTimelines({ store, log, live, restoreMark, redact }: TimelinesDeps): Timelines {
  const listeners = new Map<string, Set<Listener>>();
  const hear = (laneKey: string, event: TimelineEvent) => {
    for (const listener of [...(listeners.get(laneKey) ?? []), ...(listeners.get(everyLane) ?? [])]) {
      try {
        listener(event);
      } catch (error) {
        // A watcher must not disturb the run; the client rereads the store.
        log.warn({ laneKey, error }, 'timeline.listener-failed');
      }
    }
  };
  const readFirst = async (laneKey: string): Promise<TimelineEvent | undefined> => {
    try {
      const parked = await store.read(readParked, { laneKey });
      return parked && { kind: 'parked', ...parked };
    } catch (error) {
      log.warn({ laneKey, error }, 'timeline.not-read');
      return undefined;
    }
  };
  const tell = (laneKey: string, event: TimelineEvent) => {
    hear(laneKey, event);
    live.publish({ kind: 'timeline', laneKey, event });
  };
  return {
    hear,
    watchLane: (laneKey, onEvent, signal) => watch(listeners, { laneKey, listener: onEvent, signal }),
    watchAll: (onChange, signal) =>
      watch(listeners, { laneKey: everyLane, listener: whenActivityChanges(onChange), signal }),
    publish: (laneKey, event) => {
      tell(laneKey, event);
      const top = topLaneOf(laneKey);
      // A conversation also shows its sub-agents, so it has to reread their states.
      if (top !== laneKey && changesActivity(event)) tell(top, { kind: 'changed' });
    },
    readerFor: (laneKeyFor) => ({
      sessionOf: (route) => laneKeyFor(route) + restoreMark,
      read: async (route, options) => {
        const items = await store.read(readTimeline, { laneKey: laneKeyFor(route), ...options });
        return items.map(withoutScaffolding).map((item) => withCleanReason(item, redact));
      },
      standing: (route) => store.read(readActivity, { laneKey: laneKeyFor(route) }),
      watch: (route, onEvent, signal) => {
        if (signal.aborted) return;
        const laneKey = laneKeyFor(route);
        let isOutdated = false;
        const listener = (event: TimelineEvent) => {
          isOutdated ||= event.kind === 'run' || event.kind === 'parked';
          onEvent(event);
        };
        watch(listeners, { laneKey, listener, signal });
        // A park may have been announced before anybody watched here, and may last for days.
        void readFirst(laneKey).then((event) => {
          if (event && !isOutdated && !signal.aborted) onEvent(event);
        });
      },
    }),
  };
}

/** An answer is copied without what was never said, such as reasoning in tags. */
function withoutScaffolding({ markdown, ...item }: TimelineItem): TimelineItem {
  const said = markdown === undefined ? '' : readableText(markdown, 'chat');
  return said === '' || said === item.text ? item : { ...item, markdown: said };
}

/** Longest reason that is shown, in UTF-16 units; `why` has all of it. */
const maxReason = 300;

function withCleanReason({ reason, ...item }: TimelineItem, redact: TimelinesDeps['redact']): TimelineItem {
  if (reason === undefined) return item;
  const clean = stripText(redact(reason)).replace(/\s+/g, ' ').trim();
  return { ...item, reason: clean.slice(0, maxReason).toWellFormed() };
}

type Watch = { readonly laneKey: string; readonly listener: Listener; readonly signal: AbortSignal };

function watch(listeners: Map<string, Set<Listener>>, { laneKey, listener, signal }: Watch): void {
  if (signal.aborted) return;
  const known = listeners.get(laneKey) ?? new Set();
  listeners.set(laneKey, known.add(listener));
  signal.addEventListener('abort', () => {
    known.delete(listener);
    if (known.size === 0) listeners.delete(laneKey);
  });
}

function whenActivityChanges(onChange: () => void): Listener {
  return (event) => {
    if (changesActivity(event)) onChange();
  };
}

/** Says whether the event means that a lane's stored state has changed. */
function changesActivity({ kind }: TimelineEvent): boolean {
  return kind === 'run' || kind === 'changed' || kind === 'parked';
}
