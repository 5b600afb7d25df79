import { type FeedFrame, kindOf } from '#contracts/feed-frame.ts';
import type { FeedBatch } from './feed-batch.ts';
import type { FeedPlace } from './feed-place.ts';

export type FeedFilter = {
  /** Kinds of frames; absent: all. */
  readonly kinds?: ReadonlySet<string> | undefined;
  /** Only this run, named by its id or its reserved id. */
  readonly run?: string | undefined;
};

/** Number and size (UTF-16 units) of frames that may wait for a reader before a snapshot replaces them. */
const maxFrames = 100;
const maxLength = 512 * 1024;

/** A batch with its share of the limits; a snapshot has none, since it has to get through. */
type WaitingBatch = { readonly batch: FeedBatch; readonly frames: number; readonly length: number };

/**
 * One follower of a lane. What it hasn't taken waits here; when that is too much, it is dropped, and the reader gets a
 * snapshot once it has taken what it was given before.
 */
export class FeedReader implements AsyncIterableIterator<FeedBatch> {
  readonly filter: FeedFilter;
  /** The run that the filter means, once it is known. */
  target: string | undefined;
  readonly #signal: AbortSignal;
  readonly #askForSnapshot: () => void;
  #place: FeedPlace | undefined;
  #phase: 'behind' | 'live' | 'over' = 'behind';
  #waiting: WaitingBatch[] = [];
  #wake: (() => void) | undefined;

  constructor(
    filter: FeedFilter,
    {
      place,
      signal,
      askForSnapshot,
    }: { place?: FeedPlace | undefined; signal: AbortSignal; askForSnapshot: () => void },
  ) {
    this.filter = filter;
    this.#place = place;
    this.#signal = signal;
    this.#askForSnapshot = askForSnapshot;
    signal.addEventListener('abort', () => this.#wake?.(), { once: true });
  }

  /** How far it has read; undefined before its first snapshot. */
  get place(): FeedPlace | undefined {
    return this.#place;
  }

  get isLive(): boolean {
    return this.#phase === 'live';
  }

  /** Says whether it needs a snapshot and has room for one. */
  get isHungry(): boolean {
    return this.#phase === 'behind' && this.#wake !== undefined && this.#waiting.length === 0;
  }

  /** Readers with the same key get the same frames. */
  get key(): string {
    return `${this.target ?? ''} ${this.filter.run === undefined ? '' : 'run'} ${[...(this.filter.kinds ?? [])]}`;
  }

  /** Says whether the reader wants the frame. The end of a run that it follows alone comes by itself. */
  wants(frame: FeedFrame): boolean {
    const { run, kinds } = this.filter;
    if (kinds && !kinds.has(kindOf(frame))) return false;
    if (run === undefined) return true;
    if (frame.type !== 'event' || !('runId' in frame.event)) return false;
    const { event } = frame;
    return event.runId === this.target && !(event.kind === 'run' && event.state === 'ended');
  }

  /** Says whether the reader learns the ends of all runs. */
  get wantsEnds(): boolean {
    return this.filter.run === undefined && (this.filter.kinds?.has('run') ?? true);
  }

  /** Has the reader begin again with a snapshot. */
  fallBehind(): void {
    if (this.#phase !== 'live') return;
    this.#waiting = [];
    this.#phase = 'behind';
    this.#wake?.();
  }

  /** Adds what has just happened; a reader that is behind learns it from its next snapshot. */
  offer(batch: FeedBatch): void {
    if (this.#phase !== 'live' || batch.length === 0) return;
    this.#add({ batch, frames: batch.length, length: lengthOf(batch) });
    const sum = (size: 'frames' | 'length') => this.#waiting.reduce((total, one) => total + one[size], 0);
    if (sum('frames') > maxFrames || sum('length') > maxLength) this.fallBehind();
  }

  /** Gives a hungry reader what it has missed. `isAll`: it is up to date then; otherwise there is more. */
  catchUp(batch: FeedBatch, isAll: boolean): void {
    if (isAll && this.#phase === 'behind') this.#phase = 'live';
    this.#add({ batch, frames: 0, length: 0 });
  }

  /** Ends the feed behind what is waiting. */
  finish(): void {
    this.#phase = 'over';
    this.#wake?.();
  }

  async next(): Promise<IteratorResult<FeedBatch, undefined>> {
    for (;;) {
      if (this.#signal.aborted) return { done: true, value: undefined };
      const next = this.#waiting.shift();
      if (next) return { done: false, value: this.#take(next.batch) };
      if (this.#phase === 'over') return { done: true, value: undefined };
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      if (this.#phase === 'behind') this.#askForSnapshot();
      await woken;
      this.#wake = undefined;
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #add(next: WaitingBatch): void {
    if (next.batch.length > 0) this.#waiting.push(next);
    this.#wake?.();
  }

  #take(batch: FeedBatch): FeedBatch {
    this.#place = batch.findLast(({ place }) => place !== undefined)?.place ?? this.#place;
    return batch;
  }
}

function lengthOf(batch: FeedBatch): number {
  return batch.reduce((sum, { json }) => sum + json.length, 0);
}
