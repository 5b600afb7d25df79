/**
 * The feeds of sessions, by lane. Clients' events reach every process; the others only those that say that they follow
 * the lane. Publishing never waits and never throws, and a slow subscriber is told how much it has missed.
 */
import type { Clock } from '#contracts/clock.ts';
import { type ClientEvent, changesLane, type FeedEvent, isForClients } from '#contracts/feed.ts';
import type { Log } from '#contracts/log.ts';
import { topLaneOf } from '#contracts/session-key.ts';
import type { LiveEvents } from './live-events.ts';

/** Tells a subscriber that it was too slow: this many events didn't fit in its buffer. */
export type LagNote = { readonly lagged: number };

/** Events of sessions, across all processes of a database. */
export interface Feed {
  /** Sends an event to watchers and subscribers here and in other processes. */
  publish(laneKey: string, event: FeedEvent): void;
  /** Tells the end of a run that no process could report. */
  gaveUp(run: { readonly laneKey: string; readonly runId: string; readonly reason: string }): void;
  /** Says whether anybody subscribes to the lane, so that its text is worth publishing. */
  isFollowed(laneKey: string): boolean;
  /** Calls back for each event of the lane that clients show, until the signal aborts. */
  watch(laneKey: string, onEvent: (event: ClientEvent) => void, signal: AbortSignal): void;
  /** Calls back whenever the stored state of any lane may have changed, until the signal aborts. */
  watchAll(onChange: () => void, signal: AbortSignal): void;
  /** Returns the lane's events from this call on, until the signal aborts. */
  subscribe(laneKey: string, signal: AbortSignal): AsyncIterableIterator<FeedEvent | LagNote>;
  /** Takes an event of another process. */
  hear(laneKey: string, event: FeedEvent): void;
  /** Notes that another process follows the lane for a while; `isNew`: its readers know nothing of the open run. */
  follow(laneKey: string, isNew?: boolean): void;
  /** Asks whichever process works on the lane's run for all that it has written of its message. */
  requestText(laneKey: string): void;
  /** Calls back when a follower of the lane needs what its run has written, until the signal aborts. */
  onTextRequest(laneKey: string, tell: () => void, signal: AbortSignal): void;
}

export type FeedDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly live: Pick<LiveEvents, 'publish'>;
  /** Number of events that each subscriber may leave unread. */
  readonly capacity?: number;
};

type Listener<Event> = (event: Event) => void;
type Listeners<Event> = Map<string, Set<Listener<Event>>>;

/** How often a process announces that it follows a lane, and how long an announcement is valid, ms. */
const repeatMs = 10_000;
const followTtlMs = 30_000;
/** Never a session key. */
const everyLane = '*';

/** Creates the feeds of this process; `live` carries events to the other processes. */
export function createFeed({ clock, log, live, capacity = 64 }: FeedDeps): Feed {
  const watchers: Listeners<ClientEvent> = new Map();
  const subscribers: Listeners<FeedEvent> = new Map();
  const writers: Listeners<undefined> = new Map();
  const elsewhere = createFollowedLanes(clock);
  const call = <Event>(listeners: Listeners<Event>, laneKey: string, event: Event) => {
    for (const listener of [...(listeners.get(laneKey) ?? [])]) attempt(() => listener(event), laneKey, log);
  };
  const hear = (laneKey: string, event: FeedEvent) => {
    if (isForClients(event)) for (const key of [laneKey, everyLane]) call(watchers, key, event);
    call(subscribers, laneKey, event);
  };
  const tell = (laneKey: string, event: FeedEvent) => {
    hear(laneKey, event);
    if (isForClients(event) || elsewhere.has(laneKey)) live.publish({ kind: 'timeline', laneKey, event });
  };
  const requestText = (laneKey: string) => {
    call(writers, laneKey, undefined);
    live.publish({ kind: 'follow', laneKey, isNew: true });
  };
  const announceFollow = async (laneKey: string, signal: AbortSignal) => {
    if (!signal.aborted) requestText(laneKey);
    while (!signal.aborted) {
      await clock.wait(repeatMs, signal);
      if (!signal.aborted) live.publish({ kind: 'follow', laneKey });
    }
  };
  const publish = (laneKey: string, event: FeedEvent) => {
    tell(laneKey, event);
    const top = topLaneOf(laneKey);
    // A conversation also shows the states of its sub-agents, though nothing that they do.
    if (top !== laneKey && changesLane(event)) tell(top, { kind: 'changed' });
  };
  return {
    publish,
    gaveUp: ({ laneKey, ...end }) => publish(laneKey, { kind: 'run', state: 'ended', ...end }),
    isFollowed: (laneKey) => subscribers.has(laneKey) || elsewhere.has(laneKey),
    watch: (laneKey, onEvent, signal) => listen(watchers, { laneKey, listener: onEvent, signal }),
    watchAll: (onChange, signal) => {
      const listener = (event: ClientEvent) => changesLane(event) && onChange();
      listen(watchers, { laneKey: everyLane, listener, signal });
    },
    subscribe: (laneKey, signal) => {
      const over = new AbortController();
      const until = AbortSignal.any([signal, over.signal]);
      const subscriber = new Subscriber<FeedEvent>(capacity, until, () => over.abort());
      listen(subscribers, { laneKey, listener: subscriber.offer, signal: until });
      void announceFollow(laneKey, until);
      return subscriber;
    },
    hear,
    requestText,
    onTextRequest: (laneKey, listener, signal) => listen(writers, { laneKey, listener, signal }),
    follow: (laneKey, isNew = false) => {
      elsewhere.add(laneKey);
      if (isNew) call(writers, laneKey, undefined);
    },
  };
}

/** Lanes that other processes follow, for as long as they say so. */
function createFollowedLanes(clock: Clock) {
  const until = new Map<string, number>();
  const has = (laneKey: string) => (until.get(laneKey) ?? 0) > clock.now();
  return {
    has,
    add: (laneKey: string) => {
      // Expired entries are removed here, because a lane may never be published in again.
      for (const known of until.keys()) if (!has(known)) until.delete(known);
      until.set(laneKey, clock.now() + followTtlMs);
    },
  };
}

/** A watcher must not disturb the run; its client reads the store again. */
function attempt(listener: () => void, laneKey: string, log: Log): void {
  try {
    listener();
  } catch (error) {
    log.warn({ laneKey, error }, 'feed.listener-failed');
  }
}

type Registration<Event> = {
  readonly laneKey: string;
  readonly listener: Listener<Event>;
  readonly signal: AbortSignal;
};

function listen<Event>(
  listeners: Listeners<Event>,
  { laneKey, listener, signal }: Registration<Event>,
): void {
  if (signal.aborted) return;
  const known = listeners.get(laneKey) ?? new Set();
  listeners.set(laneKey, known.add(listener));
  signal.addEventListener('abort', () => {
    known.delete(listener);
    if (known.size === 0) listeners.delete(laneKey);
  });
}

class Subscriber<Event> implements AsyncIterableIterator<Event | LagNote> {
  readonly #capacity: number;
  readonly #signal: AbortSignal;
  readonly #stop: () => void;
  readonly #buffer: Event[] = [];
  #missed = 0;
  #wake: (() => void) | undefined;

  constructor(capacity: number, signal: AbortSignal, stop: () => void) {
    this.#capacity = capacity;
    this.#signal = signal;
    this.#stop = stop;
    signal.addEventListener('abort', () => this.#wake?.(), { once: true });
  }

  /** Buffers an event; after a miss, accepts no more until the consumer has been told. */
  readonly offer = (event: Event): void => {
    if (this.#missed > 0 || this.#buffer.length >= this.#capacity) this.#missed += 1;
    else this.#buffer.push(event);
    this.#wake?.();
  };

  async next(): Promise<IteratorResult<Event | LagNote, undefined>> {
    for (;;) {
      const event = this.#buffer.shift();
      if (event !== undefined) return { done: false, value: event };
      if (this.#missed > 0) {
        const lagged = this.#missed;
        this.#missed = 0;
        return { done: false, value: { lagged } };
      }
      if (this.#signal.aborted) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async return(): Promise<IteratorResult<Event | LagNote, undefined>> {
    this.#stop();
    this.#buffer.length = 0;
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
