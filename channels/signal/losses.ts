import { keepRecent } from '#channel-kit/keep-recent.ts';
import type { ChannelGap } from '#contracts/channel.ts';
import type { EventKey } from '#contracts/ids.ts';
import type { ReadBatch } from './inbound.ts';
import type { LastSeen } from './last-seen.ts';
import type { SpoolEntry } from './spool.ts';

/** A message that is neither stored nor kept; `raw` is absent for one that was too large to be read. */
export type Loss = { readonly at: number; readonly raw?: string | undefined };

export type LossesDeps = {
  readonly lastSeen: Pick<LastSeen, 'note' | 'write'>;
  /** Undefined while it is not known whose message it is. */
  read(entries: readonly SpoolEntry[]): Promise<ReadBatch | undefined>;
  tell(gap: ChannelGap): void;
};

/** So many losses may be told by the webhook before the socket brings the first of them. */
const mostKept = 1_000;

/** Tells each loss once: the webhook and the socket bring the same message. */
export class Losses {
  readonly #deps: LossesDeps;
  readonly #told = new Map<EventKey, true>();

  constructor(deps: LossesDeps) {
    this.#deps = deps;
  }

  /** Noted in the file too: the owner may not be reachable now, and `doctor` reads it. */
  async note(reason: string, { at, raw }: Loss): Promise<void> {
    const { lastSeen, tell } = this.#deps;
    lastSeen.note('lostAt');
    void lastSeen.write();
    if (raw !== undefined && (await this.#isTold({ at, raw }))) return;
    tell({ since: at, code: 'lost', reason });
  }

  async #isTold(entry: SpoolEntry): Promise<boolean> {
    const { events = [], unreadable = [] } = (await this.#deps.read([entry])) ?? {};
    const keys = [...events, ...unreadable].map(({ eventKey }) => eventKey);
    const isTold = keys.length > 0 && keys.every((key) => this.#told.has(key));
    for (const key of keys) keepRecent(this.#told, mostKept, [key, true]);
    return isTold;
  }
}
