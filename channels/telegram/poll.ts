/**
 * Receives updates without losing one: a batch is handed to the intake, and only when the intake has
 * stored it does the next `getUpdates` give a higher offset, which is what confirms it to Telegram.
 * grammY's own polling confirms while handlers still run, or on stop, and would lose updates here.
 */
import { setImmediate as otherWorkDone } from 'node:timers/promises';
import { acceptUntilStored } from '#channel-kit/accept-until-stored.ts';
import { backoffMs } from '#channel-kit/backoff.ts';
import { oversizedIn } from '#channel-kit/read-json.ts';
import { retryAfterMs, shortestGapMs } from '#channel-kit/remote-number.ts';
import { createYielder } from '#channel-kit/take-turns.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { ChannelDeps, ChannelTrouble, Intake } from '#contracts/channel.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import type { BotApi } from './bot-api.ts';
import { type ApiRefusal, networkReason, readRefusal } from './failures.ts';
import type { Identity } from './identity.ts';
import { formatCursor, readCursor } from './ids.ts';
import { allowedUpdates, joinBatches, type ReadBatch, readBatch, updateIdOf } from './inbound.ts';

/** The calls that receiving needs. */
export type PollApi = Pick<BotApi, 'getUpdates' | 'deleteWebhook'>;

export type PollDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: PollApi;
  readonly identity: Identity;
  readonly pollSeconds: number;
  /** How long past its own timeout a poll may stay silent before its connection counts as dead, ms. Default: 15 s. */
  readonly silenceMs?: number;
  /** Whether another poller uses the same token; outlives this poll, which may end and be started again. */
  readonly contest: { isOn: boolean };
  /** Adds facts that need a call of their own, before the events are stored. */
  readonly enrich: (
    events: readonly InboundEnvelope[],
    signal: AbortSignal,
  ) => Promise<readonly InboundEnvelope[]>;
  /** Called with the events' acceptances once they are stored. Never waits, never throws. */
  readonly onStored: (events: readonly InboundEnvelope[], acceptances: readonly Acceptance[]) => void;
};

export type Poll = { stop(): Promise<void> };

const firstBackoffMs = shortestGapMs;
const longestBackoffMs = 30_000;
/** The longest pause while nothing answers at all, ms: an attempt costs nothing, and people wait. */
const longestAbsenceMs = 5_000;
const usualSilenceMs = 15_000;
/** How long Telegram keeps updates that nobody fetches, ms. */
const keptMs = 24 * 3_600_000;
/** The size of one poll; further updates come with the next one. */
const maxUpdates = 100;
/** A webhook, or another poller that is ending, is gone after these attempts; anything else is retried slowly. */
const quickAttempts = 3;

/** Starts receiving in the background. `stop` aborts the poll in flight, which confirms nothing. */
export function startPoll(deps: PollDeps, intake: Intake): Poll {
  const stopping = new AbortController();
  const loop = new PollLoop(deps, intake, stopping);
  const running = loop.run().catch((error: unknown) => {
    // Every expected fault is handled inside; this one is a bug in Parley, and receiving has ended.
    deps.log.error({ error: String(error) }, 'telegram.poll-crashed');
    intake.trouble({
      kind: 'unreachable',
      code: 'internal',
      detail: 'receiving stopped after an internal fault',
      isOver: true,
    });
  });
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

/** An answer that can't be used. */
class StrangeAnswer extends Error {}

function reasonOf(error: unknown): string {
  return error instanceof StrangeAnswer ? error.message : networkReason(error);
}

class PollLoop {
  readonly #deps: PollDeps;
  readonly #intake: Intake;
  readonly #stopping: AbortController;
  #offset: number | undefined;
  /** Fewer after an answer that was too large to be parsed. */
  #limit = maxUpdates;
  #toldName: string | undefined;
  #mayHaveWebhook = true;
  #failures = 0;
  #refusals = 0;
  /** Telegram has answered since the last failure or the start. */
  #isProven = false;
  #trouble: ChannelTrouble['kind'] | undefined;
  /** The time of the last answer; before the first one, until when messages for the account were received. */
  #heardAt: number | undefined;

  constructor(deps: PollDeps, intake: Intake, stopping: AbortController) {
    this.#deps = deps;
    this.#intake = intake;
    this.#stopping = stopping;
    this.#offset = readCursor(deps.identity.bot, intake.cursor);
    this.#heardAt = intake.heldUntil;
  }

  get #signal(): AbortSignal {
    return this.#stopping.signal;
  }

  async run(): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        await this.#pollOnce();
      } catch (error) {
        if (!this.#signal.aborted) await this.#failed(error);
      }
    }
  }

  /** Polls once and handles the updates. After an immediate answer with nothing new, it waits before the next poll. */
  async #pollOnce(): Promise<void> {
    const { clock } = this.#deps;
    const began = clock.now();
    // The latest poller ends the other's poll, so only a long poll shows that the other is gone.
    const isQuick = !this.#isProven && !this.#deps.contest.isOn;
    const [updates] = await Promise.all([
      this.#fetch(isQuick ? 0 : this.#deps.pollSeconds),
      this.#deps.identity.refresh(this.#signal),
    ]);
    // Without a single id nothing can be confirmed: the same answer would come again and again.
    const isLost = updates.length > 0 && updates.every((update) => updateIdOf(update) === undefined);
    if (!isLost) this.#recovered();
    const isNews = updates.length > 0 ? await this.#handOver(updates) : isQuick;
    // A clock that was set back must not lengthen the gap.
    const gapMs = shortestGapMs - Math.max(0, clock.now() - began);
    if (!isNews && gapMs > 0) await clock.wait(gapMs, this.#signal);
  }

  /** The first poll doesn't wait for updates, so that it is known immediately whether Telegram answers. */
  async #fetch(pollSeconds: number): Promise<readonly unknown[]> {
    const { api, silenceMs = usualSilenceMs } = this.#deps;
    const limit = AbortSignal.timeout(pollSeconds * 1000 + silenceMs);
    const signal = AbortSignal.any([this.#signal, limit]);
    if (this.#mayHaveWebhook) {
      await api.deleteWebhook({ drop_pending_updates: false }, signal);
      this.#mayHaveWebhook = false;
    }
    const updates = await this.#getUpdates(pollSeconds, signal);
    if (!Array.isArray(updates)) throw new StrangeAnswer('the server there isn’t the Bot API');
    return updates.slice(0, maxUpdates);
  }

  /** Asks again for fewer after an answer that is too large to be parsed; the single update that is remains unread. */
  async #getUpdates(timeout: number, signal: AbortSignal): Promise<unknown> {
    const offset = this.#offset === undefined ? {} : { offset: this.#offset };
    for (;;) {
      const limit = this.#limit;
      try {
        const question = { ...offset, limit, timeout, allowed_updates: allowedUpdates };
        const updates = await this.#deps.api.getUpdates(question, signal);
        this.#limit = Math.min(maxUpdates, limit * 10);
        return updates;
      } catch (error) {
        const oversized = oversizedIn(error);
        if (oversized === undefined) throw error;
        if (limit === 1) return [oversized];
        this.#limit = limit / 10;
      }
    }
  }

  /** Resolves with false if the updates contained nothing new, which means that Telegram is repeating itself. */
  async #handOver(updates: readonly unknown[]): Promise<boolean> {
    const { identity, enrich } = this.#deps;
    let batch = await this.#read(updates);
    if (await identity.refreshFor(batch.events, this.#signal)) batch = await this.#read(updates);
    this.#reportName();
    for (const { eventKey, problem } of batch.unreadable)
      this.#deps.log.warn({ eventKey, problem }, 'telegram.update-not-read');
    const events = await enrich(batch.events, this.#signal);
    const acceptances = await this.#store({ ...batch, events });
    if (acceptances === undefined) return false;
    this.#deps.onStored(events, acceptances);
    // Work on the stored batch goes first: the next poll only waits, and writing its request takes 0.3 ms.
    await otherWorkDone();
    if (batch.nextOffset === undefined) throw new StrangeAnswer('Telegram sends updates without an id');
    const hasMoved = this.#offset === undefined || batch.nextOffset > this.#offset;
    this.#offset = batch.nextOffset;
    return hasMoved || acceptances.some(({ kind }) => kind !== 'duplicate');
  }

  /** Reads updates, letting other work run between two of them, however large they are. */
  async #read(updates: readonly unknown[]): Promise<ReadBatch> {
    const { identity, clock } = this.#deps;
    const { bot } = identity;
    const now = clock.now();
    const turn = createYielder();
    const read: ReadBatch[] = [];
    for (const update of updates) {
      read.push(readBatch([update], bot, now));
      await turn();
    }
    return joinBatches(read);
  }

  /** Resolves with undefined if stopped before the batch was stored, in which case nothing is confirmed. */
  #store({ events, unreadable, nextOffset }: ReadBatch): Promise<readonly Acceptance[] | undefined> {
    const { clock, log, identity } = this.#deps;
    const cursor = nextOffset === undefined ? {} : { cursor: formatCursor(identity.bot, nextOffset) };
    const batch = { events, unreadable, ...cursor };
    return acceptUntilStored(batch, {
      accept: (one) => this.#intake.accept(one),
      clock,
      log,
      channel: 'telegram',
      signal: this.#signal,
      onTakenOver: () => this.#stopping.abort(),
    });
  }

  #recovered(): void {
    this.#failures = 0;
    this.#refusals = 0;
    if (!this.#isProven || this.#trouble !== undefined) this.#intake.trouble(undefined);
    this.#isProven = true;
    this.#deps.contest.isOn = false;
    this.#trouble = undefined;
    this.#reportName();
    this.#reportGap();
  }

  /** Reports a changed name; call it before handling a batch that may use the name. */
  #reportName(): void {
    const { name } = this.#deps.identity;
    if (name !== this.#toldName) this.#intake.renamed(name);
    this.#toldName = name;
  }

  #reportGap(): void {
    const now = this.#deps.clock.now();
    const since = this.#heardAt;
    this.#heardAt = now;
    if (since === undefined || now - since <= keptMs) return;
    this.#intake.gap({ since, code: 'too-old', reason: 'Telegram keeps messages for 24 hours' });
  }

  async #failed(error: unknown): Promise<void> {
    this.#failures += 1;
    this.#isProven = false;
    const refusal = readRefusal(error);
    const longestMs = refusal === undefined ? longestAbsenceMs : longestBackoffMs;
    const fallbackMs = backoffMs(this.#failures, { firstMs: firstBackoffMs, longestMs });
    const waitMs = retryAfterMs(refusal?.askedWaitMs, { fallbackMs });
    const isLong = waitMs > longestBackoffMs;
    const problem = {
      ...this.#troubleOf(error, refusal),
      ...(isLong && { nextTryAt: this.#deps.clock.now() + waitMs }),
    };
    this.#deps.log.warn({ ...problem, failures: this.#failures }, 'telegram.poll-failed');
    if (problem.kind !== this.#trouble || problem.isOver || isLong) this.#intake.trouble(problem);
    this.#trouble = problem.kind;
    if (problem.kind === 'conflict') this.#deps.contest.isOn = true;
    if (problem.isOver) {
      this.#stopping.abort();
      return;
    }
    // A conflict is another poller, or a webhook that someone set: the latter can be removed.
    if (problem.kind === 'conflict') this.#mayHaveWebhook = true;
    await this.#deps.clock.wait(waitMs, this.#signal);
  }

  /**
   * Returns the trouble. `isOver` after a refused token, or for a problem that doesn't pass on its own: the poller then
   * stops, and the host restarts it, slowly.
   */
  #troubleOf(error: unknown, refusal: ApiRefusal | undefined): ChannelTrouble {
    if (refusal === undefined) return { kind: 'unreachable', code: 'no-answer', detail: reasonOf(error) };
    const { code, description: detail } = refusal;
    if (code === 401 || code === 404)
      return { kind: 'unauthorised', code: 'bad-credentials', detail, isOver: true };
    const isPassing = code === 429 || code >= 500;
    if (!isPassing) this.#refusals += 1;
    const isOver = this.#refusals > quickAttempts;
    if (code === 409) return { kind: 'conflict', code: 'conflict', detail, isOver };
    return { kind: 'unreachable', code: isPassing ? 'no-answer' : 'refused', detail, isOver };
  }
}
