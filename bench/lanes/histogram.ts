/** Times in classes 2 % wide, from 0.01 ms to days, so that its size doesn't grow with the counts. */
export type Counts = Readonly<Record<number, number>>;

const finest = 0.01;
const step = Math.log(1.02);

export class Histogram {
  readonly #counts = new Map<number, number>();

  add(ms: number): void {
    const place = Math.max(0, Math.round(Math.log(Math.max(ms, finest) / finest) / step));
    this.#counts.set(place, (this.#counts.get(place) ?? 0) + 1);
  }

  merge(counts: Counts): this {
    for (const [place, count] of Object.entries(counts))
      this.#counts.set(Number(place), (this.#counts.get(Number(place)) ?? 0) + count);
    return this;
  }

  /** Returns the counts since the last call, for another process. */
  take(): Counts {
    const taken = Object.fromEntries(this.#counts);
    this.#counts.clear();
    return taken;
  }

  /** Returns the value below which `share` (0 to 1) of the values lie, ms; NaN when there are none. */
  quantile(share: number): number {
    const places = [...this.#counts].sort(([a], [b]) => a - b);
    const total = places.reduce((sum, [, count]) => sum + count, 0);
    let below = 0;
    for (const [place, count] of places) {
      below += count;
      if (below >= share * total) return finest * Math.exp(place * step);
    }
    return Number.NaN;
  }
}
