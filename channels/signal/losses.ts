import { keepRecent } from '#channel-kit/keep-recent.ts';
import type { ChannelGap } from '#contracts/channel.ts';
import type { EventKey } from '#contracts/ids.ts';
import type { ReadBatch } from './inbound.ts';
import type { LastSeen } from './last-seen.ts';
import type { SpoolEntry } from './spool.ts';

/** A message that was neither stored nor kept; `raw` is absent for one that was too large to read. */
export type Loss = { readonly at: number; readonly raw?: string | undefined };

export type LossesDeps = {
  readonly lastSeen: Pick<LastSeen, 'note' | 'write'>;
  /** Returns undefined while it isn't known whose message it is. */
  read(entries: readonly SpoolEntry[]): Promise<ReadBatch | undefined>;
  tell(gap: ChannelGap): void;
};

/** How many losses the webhook may report before the socket delivers the first of them. */
const mostKept = 1_000;

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
    for (const key of keys) keepRecent(this.#told, mostKept, [key, true]);
    return isReported;
  }
}
