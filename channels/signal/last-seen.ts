import { z } from 'zod';
import { keepRecent } from '#channel-kit/keep-recent.ts';
import { readStateFile, replaceFile } from '#channel-kit/state-file.ts';
import type { ChannelGap } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { EventKey } from '#contracts/ids.ts';
import type { ReadBatch } from './inbound.ts';
import type { SpoolEntry } from './spool.ts';

const schema = z.object({
  /** When messages for this account were last being received; all times are in ms since the epoch. */
  aliveAt: z.number().optional(),
  /** When the webhook was last called. */
  webhookAt: z.number().optional(),
  /** When a message arrived that couldn't be kept. */
  lostAt: z.number().optional(),
});
export type Seen = z.output<typeof schema>;

const writeEveryMs = 15_000;

/**
 * When messages were last certainly received, in the channel's own file, so that the next process can say since when
 * they may have been missed. Exact to 15 seconds after a crash, and exact after a stop.
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
    // On a first start nothing is known, and no gap is reported.
    this.#seen = { ...(await readStateFile(this.#path, schema)), ...this.#seen };
    return this.#seen;
  }

  note(what: keyof Seen): void {
    this.#seen = { ...this.#seen, [what]: this.#clock.now() };
  }

  /** Writes every 15 s and calls `onTick` each time, until the signal aborts. A full disk only costs exactness. */
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
    // The file may not have been read yet, and all of it is replaced.
    await this.read();
    // After a failed write, the gap that the next process reports starts a little earlier.
    await replaceFile(this.#path, JSON.stringify(this.#seen)).catch(() => undefined);
  }
}

/** A message that was neither stored nor kept; `raw` is absent for one that was too large to read. */
type Loss = { readonly at: number; readonly raw?: string | undefined };

type LossesDeps = {
  readonly lastSeen: Pick<LastSeen, 'note' | 'write'>;
  /** Returns undefined while it isn't known whose message it is. */
  read(entries: readonly SpoolEntry[]): Promise<ReadBatch | undefined>;
  tell(gap: ChannelGap): void;
};

/** How many losses the webhook may report before the socket delivers the first of them. */
const maxKept = 1_000;

/** Reports each loss once, although the webhook and the socket deliver the same message. */
export class Losses {
  readonly #deps: LossesDeps;
  readonly #told = new Map<EventKey, true>();

  constructor(deps: LossesDeps) {
    this.#deps = deps;
  }

  /** Also notes the loss in the file, which `doctor` reads: the owner may not be reachable now. */
  async note(reason: string, { at, raw }: Loss): Promise<void> {
    const { lastSeen, tell } = this.#deps;
    lastSeen.note('lostAt');
    void lastSeen.write();
    if (raw !== undefined && (await this.#isReported({ at, raw }))) return;
    tell({ since: at, code: 'lost', reason });
  }

  async #isReported(entry: SpoolEntry): Promise<boolean> {
    const { events = [], unreadable = [] } = (await this.#deps.read([entry])) ?? {};
    const keys = [...events, ...unreadable].map(({ eventKey }) => eventKey);
    const isReported = keys.length > 0 && keys.every((key) => this.#told.has(key));
    for (const key of keys) keepRecent(this.#told, maxKept, [key, true]);
    return isReported;
  }
}
