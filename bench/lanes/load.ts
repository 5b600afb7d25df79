import { setTimeout as sleep } from 'node:timers/promises';
import type { Intake } from '../../src/contracts/channel.ts';
import { now } from '../clock.ts';
import { envelopeOf } from './channel.ts';
import { Histogram } from './histogram.ts';
import type { Marked } from './message.ts';

export type Load = {
  /** How many lanes get messages. */
  readonly lanes: number;
  /** Half of the messages go to 1 % of the lanes (at least one). */
  readonly isHot: boolean;
  readonly durationMs: number;
  /**
   * Messages due per second, by the clock: those not yet accepted wait, as they would at the platform. Absent: a new
   * message for each answer, with a fixed number in progress.
   */
  readonly perSecond?: number;
  readonly inHand?: number;
  /** Resolves as soon as all are stored: they aren't answered during this process's lifetime. */
  readonly isOnlyStored?: boolean;
};

export type LoadResult = {
  readonly messages: number;
  /** Time from the first message offered to the last answer sent. */
  readonly elapsedMs: number;
};

/** The size of a platform's largest batch of updates. */
const batchSize = 100;
const patienceMs = 120_000;
/** Allowance for messages between two processes on one machine. */
const clockSkewMs = 5;

/** Offers messages as an adapter does, one batch at a time. Awaits every answer, once and in its lane's order. */
export class LoadGenerator {
  readonly #run = crypto.randomUUID().slice(0, 8);
  readonly #open = new Map<number, Marked>();
  readonly #lastOf = new Map<number, { readonly number: number; readonly sentAt: number }>();
  readonly sentAfter = new Histogram();
  #problem: Error | undefined;
  #number = 0;
  #onSent = () => {};

  /** Records an answer that has arrived, in this process or another. */
  sent({ lane, number, at }: Marked, sentAt: number): void {
    if (!this.#open.delete(number)) this.#fail(`answer ${number} was sent twice`);
    const last = this.#lastOf.get(lane);
    // A report from another process may come late; the time of sending counts.
    if (last && number < last.number && sentAt > last.sentAt + clockSkewMs)
      this.#fail(`lane ${lane}: answer ${number} was sent behind ${last.number}`);
    if (!last || number > last.number) this.#lastOf.set(lane, { number, sentAt });
    this.sentAfter.add(sentAt - at);
    this.#onSent();
  }

  async run(intake: Intake, load: Load): Promise<LoadResult> {
    const began = now();
    const first = this.#number;
    while (true) {
      const offered = this.#number - first;
      if (now() - began >= load.durationMs && offered >= dueAfter(load, load.durationMs)) break;
      const batch = this.#nextBatch(load, { began, offered });
      if (batch.length === 0) await (load.perSecond === undefined ? this.#untilSent() : sleep(2));
      else await this.#offer(intake, batch);
      if (this.#problem) throw this.#problem;
    }
    // Messages offered above the sustainable rate are answered as fast as possible.
    const deadline = now() + patienceMs + load.durationMs;
    while (this.#open.size > 0 && !load.isOnlyStored) {
      if (this.#problem) throw this.#problem;
      if (now() > deadline) throw new Error(`${this.#open.size} messages without an answer`);
      await this.#untilSent();
    }
    return { messages: this.#number - first, elapsedMs: now() - began };
  }

  #nextBatch(load: Load, { began, offered }: { began: number; offered: number }): readonly Marked[] {
    const { perSecond, inHand = 200 } = load;
    const passedMs = Math.min(now() - began, load.durationMs);
    const room = perSecond === undefined ? inHand - this.#open.size : dueAfter(load, passedMs) - offered;
    return Array.from({ length: Math.max(0, Math.min(batchSize, Math.floor(room))) }, (_, index) => ({
      lane: laneFor(load),
      number: ++this.#number,
      // A message offered by the clock counts from when it was due, so waiting for others is included.
      at: perSecond === undefined ? now() : began + ((offered + index) * 1000) / perSecond,
    }));
  }

  async #offer(intake: Intake, batch: readonly Marked[]): Promise<void> {
    for (const marked of batch) this.#open.set(marked.number, marked);
    const events = batch.map((marked) => envelopeOf(marked, this.#run));
    const acceptances = await intake.accept({ events, cursor: String(this.#number) });
    const other = acceptances.find(({ kind }) => kind !== 'accepted');
    if (other) this.#fail(`a message was not accepted but ${JSON.stringify(other)}`);
  }

  #untilSent(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, 100);
    this.#onSent = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }

  #fail(problem: string): void {
    this.#problem ??= new Error(problem);
  }
}

/** Returns how many messages are due by then; 0 when the load has no rate. */
function dueAfter({ perSecond = 0 }: Load, passedMs: number): number {
  return Math.floor((passedMs * perSecond) / 1000);
}

function laneFor({ lanes, isHot }: Load): number {
  const hot = Math.max(1, Math.floor(lanes / 100));
  return Math.floor(Math.random() * (isHot && Math.random() < 0.5 ? hot : lanes));
}
