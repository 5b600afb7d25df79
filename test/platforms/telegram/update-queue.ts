import { ApiError, type TgUpdate } from './types.ts';

const keepMs = 24 * 60 * 60 * 1000;
/** The kinds that an empty `allowed_updates` leaves out. */
const notByDefault = new Set(['chat_member', 'message_reaction', 'message_reaction_count']);

type Held = { readonly update: TgUpdate; readonly at: number };
type Poll = { readonly limit: number; readonly answer: (updates: readonly TgUpdate[] | ApiError) => void };

/**
 * Updates as the Bot API stores them: confirmed when a poll requests a higher offset, unconfirmed for 24 hours, and one
 * poller at a time (a newer poll ends the older one with a 409).
 */
export class UpdateQueue {
  readonly #now: () => number;
  #held: Held[] = [];
  /** Delivered once more, whatever the offset: a platform that repeats itself. */
  #repeats: TgUpdate[] = [];
  #all: TgUpdate[] = [];
  #nextId: number;
  #allowed: readonly string[] = [];
  #poll: Poll | undefined;
  #arrange: ((updates: readonly TgUpdate[]) => readonly TgUpdate[]) | undefined;
  #confirmedBelow = 0;

  constructor(now: () => number, firstId: number) {
    this.#now = now;
    this.#nextId = firstId;
  }

  /** Queues an update, unless the bot didn't request its kind. Returns its id. */
  push(kind: string, body: unknown): number | undefined {
    const isWanted = this.#allowed.length === 0 ? !notByDefault.has(kind) : this.#allowed.includes(kind);
    return isWanted ? this.pushRaw({ update_id: this.#nextId, [kind]: body }) : undefined;
  }

  /** Queues anything, well formed or not. */
  pushRaw(update: TgUpdate): number {
    if (Number.isInteger(update.update_id)) this.#nextId = Math.max(this.#nextId, update.update_id + 1);
    this.#held.push({ update, at: this.#now() });
    this.#all.push(update);
    this.#wake();
    return update.update_id;
  }

  /** Starts a new numbering with the next update, as after a week of silence. */
  renumber(nextId: number): void {
    this.#nextId = nextId;
  }

  /** Delivers the last `count` updates once more. */
  redeliver(count: number): void {
    this.#repeats.push(...this.#all.slice(-count));
    this.#wake();
  }

  /** Sets how the next non-empty batch is ordered. */
  arrangeNext(arrange: (updates: readonly TgUpdate[]) => readonly TgUpdate[]): void {
    this.#arrange = arrange;
  }

  /** Updates that the bot hasn't confirmed. */
  get pending(): readonly TgUpdate[] {
    this.#expire();
    return this.#held.map((held) => held.update);
  }

  get confirmedBelow(): number {
    return this.#confirmedBelow;
  }

  get allowed(): readonly string[] {
    return this.#allowed;
  }

  get isPolled(): boolean {
    return this.#poll !== undefined;
  }

  setAllowed(kinds: readonly string[]): void {
    this.#allowed = kinds;
  }

  drop(): void {
    this.#held = [];
  }

  /**
   * Confirms what is below `offset` and answers with what is left, or calls back later. An offset more than 10 past the
   * last id is ignored, and reading starts at the head (TDLib, TQueue::get). Returns a function that forgets the poll,
   * for a client that hung up.
   */
  poll(offset: number, poll: Poll & { readonly isLong: boolean }): () => void {
    this.#poll?.answer(
      new ApiError(
        409,
        'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running',
      ),
    );
    this.#poll = undefined;
    this.#expire();
    const isKnown = offset > 0 && offset <= this.#nextId + 10;
    if (isKnown) {
      this.#confirmedBelow = Math.max(this.#confirmedBelow, offset);
      this.#held = this.#held.filter(({ update }) => !(update.update_id < offset));
    }
    if (offset < 0) this.#held = this.#held.slice(offset);
    const ready = this.#take(poll.limit);
    if (ready.length > 0 || !poll.isLong) {
      poll.answer(ready);
      return () => {};
    }
    this.#poll = poll;
    return () => {
      if (this.#poll === poll) this.#poll = undefined;
    };
  }

  /** Ends a long poll that found nothing. */
  endPoll(poll: Poll): void {
    if (this.#poll !== poll) return;
    this.#poll = undefined;
    poll.answer([]);
  }

  #wake(): void {
    const poll = this.#poll;
    if (poll === undefined) return;
    this.#poll = undefined;
    poll.answer(this.#take(poll.limit));
  }

  #take(limit: number): readonly TgUpdate[] {
    const repeats = this.#repeats.splice(0, limit);
    const updates = [...repeats, ...this.#held.slice(0, limit - repeats.length).map((held) => held.update)];
    if (updates.length === 0 || this.#arrange === undefined) return updates;
    const arranged = this.#arrange(updates);
    this.#arrange = undefined;
    return arranged;
  }

  #expire(): void {
    const oldest = this.#now() - keepMs;
    if (this.#held[0] !== undefined && this.#held[0].at < oldest)
      this.#held = this.#held.filter((held) => held.at >= oldest);
  }
}
