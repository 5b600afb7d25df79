/**
 * Receives updates without losing one: a batch is handed to the intake, and only when the intake has
 * stored it does the next `getUpdates` name a higher offset, which is what confirms it to Telegram.
 * grammY's own polling confirms while handlers still run, or on stop, and would lose updates here.
 */
import { setImmediate as otherWorkDone } from 'node:timers/promises';
import type { ChannelTrouble, Intake } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { hasCode } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import type { BotApi } from './bot-api.ts';
import { networkReason, readRefusal } from './failures.ts';
import { type Bot, readCursor } from './ids.ts';
import { allowedUpdates, type ReadBatch, readBatch } from './inbound.ts';

/** The calls that receiving needs. */
export type PollApi = Pick<BotApi, 'getUpdates' | 'deleteWebhook'>;

export type PollDeps = {
  readonly api: PollApi;
  readonly bot: Bot;
  readonly clock: Clock;
  readonly log: Log;
  readonly pollSeconds: number;
  /** Adds what only a call can tell, before the events are stored. */
  readonly enrich: (
    events: readonly InboundEnvelope[],
    signal: AbortSignal,
  ) => Promise<readonly InboundEnvelope[]>;
};

export type Poll = { stop(): Promise<void> };

const firstBackoffMs = 1000;
const longestBackoffMs = 30_000;
/** Where the other side is not there at all a try costs nothing, and people wait for its return. */
const longestAbsenceMs = 5_000;
/** Beyond its own timeout, how long a poll may stay silent before its connection counts as dead. */
const silenceMs = 15_000;

/** Starts receiving in the background. `stop` aborts the poll in flight, which confirms nothing. */
export function startPoll(deps: PollDeps, intake: Intake): Poll {
  const stopping = new AbortController();
  const loop = new PollLoop(deps, intake, stopping);
  const running = loop.run().catch((error: unknown) => {
    // Every expected fault is handled inside; this is a fault of ours, and receiving has ended.
    deps.log.error({ error: String(error) }, 'telegram.poll_crashed');
    intake.trouble({ kind: 'unreachable', detail: 'receiving stopped after an internal fault' });
  });
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

class PollLoop {
  readonly #deps: PollDeps;
  readonly #intake: Intake;
  readonly #stopping: AbortController;
  #offset: number | undefined;
  #mayHaveWebhook = true;
  #failures = 0;
  #trouble: ChannelTrouble['kind'] | undefined;

  constructor(deps: PollDeps, intake: Intake, stopping: AbortController) {
    this.#deps = deps;
    this.#intake = intake;
    this.#stopping = stopping;
    this.#offset = readCursor(deps.bot, intake.cursor);
  }

  get #signal(): AbortSignal {
    return this.#stopping.signal;
  }

  async run(): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        const updates = await this.#fetch();
        this.#recovered();
        if (updates.length > 0) await this.#handOver(updates);
      } catch (error) {
        if (!this.#signal.aborted) await this.#failed(error);
      }
    }
  }

  async #fetch(): Promise<readonly unknown[]> {
    const { api, pollSeconds } = this.#deps;
    const limit = AbortSignal.timeout(pollSeconds * 1000 + silenceMs);
    const signal = AbortSignal.any([this.#signal, limit]);
    if (this.#mayHaveWebhook) {
      await api.deleteWebhook({ drop_pending_updates: false }, signal);
      this.#mayHaveWebhook = false;
    }
    return api.getUpdates(
      {
        ...(this.#offset === undefined ? {} : { offset: this.#offset }),
        limit: 100,
        timeout: pollSeconds,
        allowed_updates: allowedUpdates,
      },
      signal,
    );
  }

  async #handOver(updates: readonly unknown[]): Promise<void> {
    const { bot, clock, enrich } = this.#deps;
    const batch = readBatch(updates, bot, clock.now());
    for (const { eventKey, problem } of batch.unreadable)
      this.#deps.log.warn({ eventKey, problem }, 'telegram.update_unreadable');
    const events = await enrich(batch.events, this.#signal);
    if (!(await this.#store({ ...batch, events }))) return;
    // What has just been stored goes first: the next poll only waits, and writing it takes 0.3 ms.
    await otherWorkDone();
    // Without a single id nothing can be confirmed and the same answer comes again: not at full speed.
    if (batch.nextOffset === undefined) await clock.wait(firstBackoffMs, this.#signal);
    else this.#offset = batch.nextOffset;
  }

  /** Tries until the intake has stored the batch. False: stopped before that, so nothing is confirmed. */
  async #store({ events, unreadable, cursor }: ReadBatch): Promise<boolean> {
    for (let attempt = 1; !this.#signal.aborted; attempt += 1) {
      try {
        await this.#intake.accept({ events, unreadable, ...(cursor === undefined ? {} : { cursor }) });
        return true;
      } catch (error) {
        if (hasCode(error, 'stale_epoch')) {
          this.#deps.log.info({}, 'telegram.account_taken_over');
          this.#stopping.abort();
          return false;
        }
        this.#deps.log.warn({ attempt, error: String(error) }, 'telegram.accept_failed');
        await this.#deps.clock.wait(backoffMs(attempt, longestAbsenceMs), this.#signal);
      }
    }
    return false;
  }

  #recovered(): void {
    this.#failures = 0;
    if (this.#trouble !== undefined) this.#intake.trouble(undefined);
    this.#trouble = undefined;
  }

  async #failed(error: unknown): Promise<void> {
    this.#failures += 1;
    const refusal = readRefusal(error);
    const problem = troubleOf(error);
    this.#deps.log.warn({ ...problem, failures: this.#failures }, 'telegram.poll_failed');
    if (problem.kind !== this.#trouble) this.#intake.trouble(problem);
    this.#trouble = problem.kind;
    if (problem.kind === 'unauthorised') {
      this.#stopping.abort();
      return;
    }
    // A conflict is another poller, or a webhook that someone set: the latter can be removed.
    if (problem.kind === 'conflict') this.#mayHaveWebhook = true;
    const longestMs = refusal === undefined ? longestAbsenceMs : longestBackoffMs;
    const waitMs = refusal?.retryAfterMs ?? backoffMs(this.#failures, longestMs);
    await this.#deps.clock.wait(waitMs, this.#signal);
  }
}

function troubleOf(error: unknown): ChannelTrouble {
  const refusal = readRefusal(error);
  if (refusal === undefined) return { kind: 'unreachable', detail: networkReason(error) };
  const { code, description: detail } = refusal;
  if (code === 401 || code === 404) return { kind: 'unauthorised', detail };
  return { kind: code === 409 ? 'conflict' : 'unreachable', detail };
}

/** 1, 2, 4 … seconds, up to `longestMs`. */
function backoffMs(attempt: number, longestMs: number): number {
  return Math.min(longestMs, firstBackoffMs * 2 ** (attempt - 1));
}
