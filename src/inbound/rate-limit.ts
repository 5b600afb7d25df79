export type RateLimitVerdict =
  | { readonly kind: 'within' }
  /** `isFirst`: the sender hasn't been notified in this flood, which lasts until half the limit is free again. */
  | { readonly kind: 'exceeded'; readonly retryAfterMs: number; readonly isFirst: boolean };

export interface RateLimit {
  /** Counts one message of this sender at `now` (ms). Messages over the limit aren't counted. */
  take(sender: string, now: number): RateLimitVerdict;
  /** Does the same once per event: an event that is delivered again gets the same verdict as before. */
  takeOnce(event: string, sender: string, now: number): RateLimitVerdict;
}

type Bucket = { readonly tokens: number; readonly at: number; readonly wasTold: boolean };

const maxSenders = 10_000;

/**
 * Creates a token bucket per sender: `perMinute` messages at once, refilled evenly. Senders who have been quiet longest
 * are forgotten first and start with a full bucket again.
 */
export function createRateLimit({ perMinute }: { readonly perMinute: number }): RateLimit {
  const perMs = perMinute / 60_000;
  const buckets = createBoundedMap<Bucket>(maxSenders);
  const verdicts = createBoundedMap<RateLimitVerdict>(maxSenders);
  const limit: RateLimit = {
    takeOnce(event, sender, now) {
      const verdict = verdicts.get(event) ?? limit.take(sender, now);
      verdicts.set(event, verdict);
      return verdict;
    },
    take(sender, now) {
      const bucket = buckets.get(sender) ?? { tokens: perMinute, at: now, wasTold: false };
      // Time only moves forward; otherwise a clock that jumps to and fro would refill the bucket with every jump.
      const at = Math.max(bucket.at, now);
      const tokens = Math.min(perMinute, bucket.tokens + (at - bucket.at) * perMs);
      // Each refill lets one message of a flood through, which must not cause another notice for the next one.
      const wasTold = bucket.wasTold && tokens < perMinute / 2;
      if (tokens >= 1) {
        buckets.set(sender, { tokens: tokens - 1, at, wasTold });
        return { kind: 'within' };
      }
      buckets.set(sender, { tokens, at, wasTold: true });
      return { kind: 'exceeded', retryAfterMs: Math.ceil((1 - tokens) / perMs), isFirst: !wasTold };
    },
  };
  return limit;
}

/** Counts the bytes fetched for each sender within the last hour. */
export interface FileAllowance {
  hasRoom(sender: string, bytes: number): boolean;
  /** Adds to the sender's count; negative values correct an earlier one. */
  count(sender: string, bytes: number): void;
}

const minuteMs = 60_000;
const minutesKept = 60;
const maxFileSenders = 10_000;

/** Creates the counters, which are per minute and in memory: a restart forgets them. */
export function createFileAllowance(
  clock: { now(): number },
  { bytesPerHour }: { readonly bytesPerHour: number },
): FileAllowance {
  const senders = createBoundedMap<ReadonlyMap<number, number>>(maxFileSenders);
  const minute = () => Math.floor(clock.now() / minuteMs);
  const lately = (sender: string) =>
    [...(senders.get(sender) ?? [])].filter(([at]) => at > minute() - minutesKept);
  return {
    hasRoom: (sender, bytes) =>
      lately(sender).reduce((sum, [, counted]) => sum + counted, bytes) <= bytesPerHour,
    count: (sender, bytes) => {
      const minutes = new Map(lately(sender));
      minutes.set(minute(), (minutes.get(minute()) ?? 0) + bytes);
      senders.set(sender, minutes);
    },
  };
}

/**
 * A map that evicts its least recently used entry. Meant for counters per sender: a flood of senders costs the oldest
 * counters, not memory.
 */
type BoundedMap<Value> = {
  /** Also counts as a use. */
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
  readonly size: number;
};

export function createBoundedMap<Value>(maxEntries: number): BoundedMap<Value> {
  // A Map iterates in insertion order, so its first key is the one used least recently.
  const entries = new Map<string, Value>();
  const put = (key: string, value: Value) => {
    entries.delete(key);
    entries.set(key, value);
  };
  return {
    get(key) {
      const value = entries.get(key);
      if (value !== undefined) put(key, value);
      return value;
    },
    set(key, value) {
      put(key, value);
      if (entries.size <= maxEntries) return;
      const [oldest] = entries.keys();
      if (oldest !== undefined) entries.delete(oldest);
    },
    get size() {
      return entries.size;
    },
  };
}
