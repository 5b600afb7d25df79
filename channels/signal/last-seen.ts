import { z } from 'zod';
import { readStateFile, replaceFile } from '#channel-kit/state-file.ts';
import type { Clock } from '#contracts/clock.ts';

const schema = z.object({
  /** When this account was last received for. */
  aliveAt: z.number().optional(),
  /** When the webhook was last called. */
  webhookAt: z.number().optional(),
  /** When a message came that could not be kept. */
  lostAt: z.number().optional(),
});
export type Seen = z.output<typeof schema>;

const writeEveryMs = 15_000;

/**
 * When messages were last surely heard, in a file of the channel's own: so the next process can say from
 * when on they may have been missed. Exact to 15 seconds after a crash, to the moment after a stop.
 */
export class LastSeen {
  readonly #path: string;
  readonly #clock: Clock;
  #seen: Seen = {};
  #writtenAt = 0;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  async read(): Promise<Seen> {
    // Nothing is known at a first start, and no gap is told.
    this.#seen = { ...(await readStateFile(this.#path, schema)), ...this.#seen };
    return this.#seen;
  }

  note(what: keyof Seen): void {
    this.#seen = { ...this.#seen, [what]: this.#clock.now() };
  }

  /** Writes now and then, each time calling `onTick`, until the signal ends. A disk that is full costs exactness only. */
  async keep(signal: AbortSignal, onTick: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      this.note('aliveAt');
      if (this.#clock.now() - this.#writtenAt >= writeEveryMs) await this.write();
      await onTick();
      await this.#clock.wait(writeEveryMs, signal);
    }
  }

  async write(): Promise<void> {
    this.#writtenAt = this.#clock.now();
    // It may not have been read yet, and is replaced as a whole.
    await this.read();
    // After a failed write the gap told by the next process begins a little earlier.
    await replaceFile(this.#path, JSON.stringify(this.#seen)).catch(() => undefined);
  }
}
