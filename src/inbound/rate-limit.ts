import { createBoundedMap } from './bounded-map.ts';

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
