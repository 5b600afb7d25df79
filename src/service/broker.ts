/** Tells a subscriber that it was too slow: this many events didn't fit in its buffer. */
export type LagNote = { readonly lagged: number };

/** Events by topic, within this process. Publishing never blocks and never throws. */
export interface Broker<Event> {
  publish(topic: string, event: Event): void;
  /** Says whether the topic has subscribers. */
  isHeard(topic: string): boolean;
  /** Returns events from this call on, until the signal aborts or the consumer stops. */
  subscribe(topic: string, signal: AbortSignal): AsyncIterableIterator<Event | LagNote>;
}

/** Creates a broker whose subscribers each buffer up to `capacity` events. */
export function createBroker<Event>(capacity = 64): Broker<Event> {
  const topics = new Map<string, Set<Subscriber<Event>>>();
  return {
    publish: (topic, event) => {
      for (const subscriber of topics.get(topic) ?? []) subscriber.offer(event);
    },
    isHeard: (topic) => topics.has(topic),
    subscribe: (topic, signal) => {
      const all = topics.get(topic) ?? new Set();
      const subscriber = new Subscriber<Event>(capacity, () => {
        all.delete(subscriber);
        if (all.size === 0 && topics.get(topic) === all) topics.delete(topic);
        signal.removeEventListener('abort', subscriber.close);
      });
      topics.set(topic, all.add(subscriber));
      signal.addEventListener('abort', subscriber.close, { once: true });
      if (signal.aborted) subscriber.close();
      return subscriber;
    },
  };
}

class Subscriber<Event> implements AsyncIterableIterator<Event | LagNote> {
  readonly #capacity: number;
  readonly #onClose: () => void;
  readonly #buffer: Event[] = [];
  #missed = 0;
  #isClosed = false;
  #wake: (() => void) | undefined;

  constructor(capacity: number, onClose: () => void) {
    this.#capacity = capacity;
    this.#onClose = onClose;
  }

  /** Buffers an event; after a miss, accepts no more until the consumer has been told. */
  offer(event: Event): void {
    if (this.#missed > 0 || this.#buffer.length >= this.#capacity) this.#missed += 1;
    else this.#buffer.push(event);
    this.#wake?.();
  }

  readonly close = (): void => {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClose();
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
      if (this.#isClosed) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async return(): Promise<IteratorResult<Event | LagNote, undefined>> {
    this.close();
    this.#buffer.length = 0;
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
