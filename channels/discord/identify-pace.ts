/**
 * Discord requires five seconds between new sessions and allows a thousand a day; a bot that starts more loses its
 * token. The count is kept for the adapter's lifetime, however often it is started.
 */
import type { Clock } from '#contracts/clock.ts';

const dayMs = 24 * 3_600_000;
const gapMs = 5_000;
/** A healthy day has a handful. From this many on, something is wrong, and the longer gap allows 720 a day. */
const manyADay = 100;
const gapOfManyMs = 120_000;

export class IdentifyPace {
  readonly #clock: Clock;
  #times: number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How long the next session has to wait, ms. */
  get waitMs(): number {
    const latest = this.#times.at(-1);
    if (latest === undefined) return 0;
    const gap = this.today < manyADay ? gapMs : gapOfManyMs;
    return Math.min(gap, Math.max(0, latest + gap - this.#clock.now()));
  }

  /** How many sessions were started in the last 24 hours. */
  get today(): number {
    const since = this.#clock.now() - dayMs;
    this.#times = this.#times.filter((time) => time > since);
    return this.#times.length;
  }

  note(): void {
    this.#times.push(this.#clock.now());
  }
}
