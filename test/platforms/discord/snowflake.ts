const epoch = 1_420_070_400_000n;

/** Generates ids that contain their time and only ever grow, like the platform's. */
export class Snowflakes {
  readonly #now: () => number;
  #last = 0n;

  constructor(now: () => number) {
    this.#now = now;
  }

  next(): string {
    const byTime = (BigInt(Math.floor(this.#now())) - epoch) << 22n;
    this.#last = byTime > this.#last ? byTime : this.#last + 1n;
    return String(this.#last);
  }
}

export const isSnowflake = (text: string): boolean => /^\d{1,20}$/.test(text);

export const compareIds = (a: string, b: string): number =>
  BigInt(a) < BigInt(b) ? -1 : BigInt(a) > BigInt(b) ? 1 : 0;
