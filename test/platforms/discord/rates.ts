import { createHash } from 'node:crypto';

export type Rate = { readonly limit: number; readonly windowMs: number };

/** `routes` are keyed by the journal's route; `other` is for the rest, `global` for the application as a whole. */
export type Rates = {
  readonly routes: Readonly<Record<string, Rate>>;
  readonly other: Rate;
  readonly global: Rate;
};

/** Generous enough for any test that isn't about rates. */
export const wideRates: Rates = {
  routes: {},
  other: { limit: 1000, windowMs: 1000 },
  global: { limit: 5000, windowMs: 1000 },
};

/** Close to what bots encounter; Discord only documents the global rate. */
export const discordRates: Rates = {
  routes: {
    'POST /channels/:channel/messages': { limit: 5, windowMs: 5000 },
    'PATCH /channels/:channel/messages/:message': { limit: 5, windowMs: 5000 },
    'DELETE /channels/:channel/messages/:message': { limit: 5, windowMs: 1000 },
    'PUT /channels/:channel/messages/:message/reactions/:emoji/@me': { limit: 1, windowMs: 250 },
    'POST /channels/:channel/typing': { limit: 5, windowMs: 5000 },
  },
  other: { limit: 50, windowMs: 1000 },
  global: { limit: 50, windowMs: 1000 },
};

export type Verdict = {
  readonly headers: Readonly<Record<string, string>>;
  readonly limited: { readonly retryAfterMs: number; readonly isGlobal: boolean } | undefined;
};

type Window = { used: number; endsAt: number };

/** Buckets per route and major parameter, and the global one. They use real time, because clients wait in real time. */
export class RateLimiter {
  readonly #rates: Rates;
  readonly #windows = new Map<string, Window>();

  constructor(rates: Rates) {
    this.#rates = rates;
  }

  /** `major` is the channel, guild or webhook of the call. Interactions don't count towards the global rate. */
  take(route: string, major: string, isInteraction: boolean): Verdict {
    const now = Date.now();
    const rate = this.#rates.routes[route] ?? this.#rates.other;
    const own = this.#window(`${route}|${major}`, rate, now);
    const all = isInteraction ? undefined : this.#window('global', this.#rates.global, now);
    if (all !== undefined && all.used >= this.#rates.global.limit)
      return { headers: {}, limited: { retryAfterMs: all.endsAt - now, isGlobal: true } };
    const isOver = own.used >= rate.limit;
    if (!isOver) own.used += 1;
    if (all !== undefined) all.used += 1;
    return {
      headers: {
        'x-ratelimit-limit': String(rate.limit),
        'x-ratelimit-remaining': String(rate.limit - own.used),
        'x-ratelimit-reset': (own.endsAt / 1000).toFixed(3),
        'x-ratelimit-reset-after': ((own.endsAt - now) / 1000).toFixed(3),
        'x-ratelimit-bucket': createHash('sha256').update(route).digest('hex').slice(0, 32),
      },
      limited: isOver ? { retryAfterMs: own.endsAt - now, isGlobal: false } : undefined,
    };
  }

  #window(key: string, { windowMs }: Rate, now: number): Window {
    const open = this.#windows.get(key);
    if (open !== undefined && open.endsAt > now) return open;
    const fresh = { used: 0, endsAt: now + windowMs };
    this.#windows.set(key, fresh);
    return fresh;
  }
}
