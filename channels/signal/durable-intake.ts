/**
 * Makes messages durable, one at a time and in order: in the store or, while that can't accept them, in the spool. The
 * caller of `take` may then confirm their arrival. As long as anything waits in the spool, everything newer goes in
 * after it.
 */
import { backoffMs } from '#channel-kit/backoff.ts';
import { createMutex } from '#channel-kit/in-turn.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { ChannelDeps, Intake } from '#contracts/channel.ts';
import { hasCode } from '#contracts/errors.ts';
import type { ReadBatch } from './inbound.ts';
import type { Spool, SpoolEntry } from './spool.ts';

export type DurableIntakeDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly spool: Pick<Spool, 'look' | 'append' | 'peek' | 'consume' | 'isEmpty'>;
  /** Returns undefined while it isn't known whose messages these are. */
  read(entries: readonly SpoolEntry[]): Promise<ReadBatch | undefined>;
  /** Called when a batch is safe; `acceptances` are undefined as long as it is in the spool. */
  onSafe(batch: ReadBatch, acceptances: readonly Acceptance[] | undefined): void;
  /** Called with what keeps the store from accepting messages, or undefined when it accepts them again. */
  onStoreTrouble(problem: string | undefined): void;
  /** Called with why the spool accepts nothing either, or undefined when messages are safe again. */
  onLoss(reason: string | undefined): void;
  /** Called when another process has started to receive for this account. */
  onTakenOver(): void;
};

/** How long to wait for the store before using the spool, ms: until it is answered, the server does nothing else. */
const patienceMs = 3000;
const pauses = { firstMs: 500, longestMs: 5000 };
const nothing: ReadBatch = { events: [], unreadable: [], changedGroups: [] };

export class DurableIntake {
  readonly #deps: DurableIntakeDeps;
  #intake: Intake | undefined;
  #stopping = new AbortController();
  readonly #inTurn = createMutex();
  #draining: Promise<void> | undefined;
  /** Neither the store nor the spool accepted the last message. */
  #isLosing = false;

  constructor(deps: DurableIntakeDeps) {
    this.#deps = deps;
  }

  /** Nothing waits, and the store accepts new messages. */
  get isClear(): boolean {
    return this.#intake !== undefined && this.#deps.spool.isEmpty && this.#draining === undefined;
  }

  /** From now on messages go to the intake, starting with those that an earlier process left in the spool. */
  async open(intake: Intake): Promise<void> {
    await this.#deps.spool.look();
    this.#stopping = new AbortController();
    this.#intake = intake;
    this.#drain();
  }

  /** Takes messages from the spool that another process received for this account and put there. */
  async look(): Promise<void> {
    const { spool, log } = this.#deps;
    await spool.look().catch((error: unknown) => log.error({ error: String(error) }, 'signal.spool-failed'));
    this.#drain();
  }

  /** Resolves when `accept` won't be called again. Messages that arrive from now on go to the spool. */
  async close(): Promise<void> {
    this.#intake = undefined;
    this.#stopping.abort();
    await this.#inTurn(async () => undefined);
    await this.#draining;
  }

  /** Resolves when all entries are safe. Rejects if they aren't, because the disk is full or broken. */
  take(...entries: readonly SpoolEntry[]): Promise<void> {
    return this.#inTurn(() => this.#take(entries));
  }

  /** Like `take`, unless the entry turns out to be safe already once everything before it has been handled. */
  takeIfMissing(entry: SpoolEntry, isMissing: (batch: ReadBatch) => boolean): Promise<void> {
    return this.#inTurn(async () => {
      const batch = await this.#deps.read([entry]);
      if (batch !== undefined && !isNothing(batch) && isMissing(batch)) await this.#take([entry]);
    });
  }

  /** Stores a batch that no sender waits for, if that is possible now. False: it isn't, and the batch is in no file. */
  pass(batch: ReadBatch): Promise<boolean> {
    return this.#inTurn(() => this.#storeNow(batch));
  }

  async #take(entries: readonly SpoolEntry[]): Promise<void> {
    const { read, onSafe } = this.#deps;
    const batch = await read(entries);
    if (batch !== undefined && isNothing(batch)) return onSafe(batch, []);
    if (batch !== undefined && (await this.#storeNow(batch))) return;
    await this.#keep(entries);
    if (batch !== undefined) onSafe(batch, undefined);
    this.#drain();
  }

  /** Also false if something older waits in the spool. Others wait for this, so it takes at most `patienceMs`. */
  async #storeNow(batch: ReadBatch): Promise<boolean> {
    if (this.#intake === undefined || !this.#deps.spool.isEmpty) return false;
    return this.#store(this.#intake, batch, AbortSignal.timeout(patienceMs));
  }

  async #keep(entries: readonly SpoolEntry[]): Promise<void> {
    try {
      for (const entry of entries) await this.#deps.spool.append(entry);
    } catch (error) {
      this.#isLosing = true;
      this.#deps.onLoss(error instanceof Error ? error.message : String(error));
      this.#drain();
      throw error;
    }
    this.#endLoss();
  }

  #endLoss(): void {
    if (!this.#isLosing) return;
    this.#isLosing = false;
    this.#deps.onLoss(undefined);
  }

  /** False if the store hasn't accepted the batch in time. It still may: the events' keys make that harmless. */
  async #store(intake: Intake, batch: ReadBatch, limit?: AbortSignal): Promise<boolean> {
    const { log, onSafe, onStoreTrouble, onTakenOver } = this.#deps;
    const { events, unreadable } = batch;
    try {
      const accepting = intake.accept({ events, unreadable });
      const acceptances = await (limit === undefined ? accepting : within(accepting, limit));
      for (const { eventKey, problem } of unreadable)
        log.warn({ eventKey, problem }, 'signal.event-not-read');
      onSafe(batch, acceptances);
      if (this.#deps.spool.isEmpty) onStoreTrouble(undefined);
      this.#endLoss();
      return true;
    } catch (error) {
      if (hasCode(error, 'stale_epoch')) {
        if (this.#intake === intake) this.#intake = undefined;
        log.info({}, 'signal.account-taken-over');
        onTakenOver();
        return false;
      }
      log.warn({ error: String(error), events: events.length }, 'signal.accept-failed');
      onStoreTrouble(error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  /** Something waits, or it isn't known whether the next message would be accepted anywhere. */
  get #hasWork(): boolean {
    return this.#isLosing || !this.#deps.spool.isEmpty;
  }

  #drain(): void {
    if (this.#draining !== undefined || this.#intake === undefined || !this.#hasWork) return;
    this.#draining = this.#drainAll().finally(() => {
      this.#draining = undefined;
      // Something may have been added while the loop was ending.
      this.#drain();
    });
  }

  async #drainAll(): Promise<void> {
    const { spool, clock, log, onStoreTrouble } = this.#deps;
    for (let failures = 0; this.#intake !== undefined && this.#hasWork; ) {
      const isTaken = await this.#drainPage(this.#intake).catch((error: unknown) => {
        log.error({ error: String(error) }, 'signal.spool-failed');
        return false;
      });
      failures = isTaken ? 0 : failures + 1;
      if (isTaken && spool.isEmpty) onStoreTrouble(undefined);
      const pauseMs = backoffMs(failures, pauses);
      if (!isTaken) await clock.wait(pauseMs, this.#stopping.signal);
    }
  }

  async #drainPage(intake: Intake): Promise<boolean> {
    const { spool, read, log } = this.#deps;
    const page = await spool.peek();
    // While messages are being lost, an empty batch tests whether the store accepts them again.
    if (page === undefined) return !this.#isLosing || this.#store(intake, nothing);
    const { entries, end } = page;
    const batch = await read(entries);
    if (batch === undefined) return false;
    if (!isNothing(batch) && !(await this.#store(intake, batch))) return false;
    await spool.consume(end);
    log.info({ entries: entries.length }, 'signal.spool-drained');
    return true;
  }
}

function isNothing({ events, unreadable }: ReadBatch): boolean {
  return events.length === 0 && unreadable.length === 0;
}

function within<T>(work: Promise<T>, limit: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onLimit = () => reject(new Error('the store takes too long'));
    limit.addEventListener('abort', onLimit, { once: true });
    work.then(resolve, reject).finally(() => limit.removeEventListener('abort', onLimit));
  });
}
