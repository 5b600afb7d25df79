/**
 * Receiving in normal and native mode. signal-cli confirms messages to Signal before their answer is out,
 * so whatever an answer carries exists here alone: few are asked for at a time, no poll is cut off, and
 * none is made while the store cannot take what it would bring.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { backoffMs } from '#channel-kit/backoff.ts';
import { neverLeft } from '#channel-kit/network-fault.ts';
import { shortestGapMs } from '#channel-kit/remote-number.ts';
import type { ChannelDeps, ChannelGap } from '#contracts/channel.ts';
import type { SignalApi } from './api.ts';
import type { SignalConfig } from './config.ts';
import { networkReason, readError, refusalReason } from './failures.ts';
import { syncFolder } from './spool.ts';

export type PollDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: Pick<SignalApi, 'send'>;
  readonly number: string;
  readonly config: Pick<SignalConfig, 'pollSeconds' | 'pollPauseMs'>;
  /** Where it is marked that polls are made. */
  readonly markPath: string;
  /** Until when the account was last received for, ms since the epoch. */
  readonly heldUntil?: number | undefined;
  /** Whether what a poll brings can be stored now. */
  isClear(): boolean;
  /** Resolves when the messages are safe. */
  take(notifications: readonly unknown[]): Promise<void>;
  onTrouble(problem: string | undefined): void;
  onGap(gap: ChannelGap): void;
  /** How long a poll in flight, and what it brought, is waited for when receiving stops, ms. 10 s. */
  readonly lastPollMs?: number;
};

export type Poll = { stop(): Promise<void> };

/** As many messages as one lost answer may cost. */
const messagesAtOnce = 10;
/** Between full answers: 100 messages a second, also of a server that repeats the same ones for ever. */
const fullGapMs = 100;
/** signal-cli may take that long beside its own waiting: SIGNAL_CLI_CMD_TIMEOUT is 120 s. */
const silenceMs = 130_000;
/** Its messages would be lost. */
const usualLastPollMs = 10_000;
const firstBackoffMs = 1000;
const longestBackoffMs = 30_000;
const longestAbsenceMs = 5000;

export function startPoll(deps: PollDeps): Poll {
  const stopping = new AbortController();
  const cutting = new AbortController();
  const running = pollMarked(deps, () => new PollLoop(deps, stopping.signal, cutting.signal).run());
  return {
    stop: async () => {
      stopping.abort();
      const late = setTimeout(() => cutting.abort(), deps.lastPollMs ?? usualLastPollMs);
      await running;
      clearTimeout(late);
    },
  };
}

/** Tells what a kill may have cut off. A disk that takes no mark costs the report only. */
async function pollMarked({ markPath, heldUntil, log, onGap }: PollDeps, poll: () => Promise<void>) {
  const mark = new PollMark(markPath);
  const notMarked = (error: unknown) => {
    log.warn({ error: String(error) }, 'signal.poll-not-marked');
    return false;
  };
  const reason = 'Parley was killed while it polled, and messages that a poll had fetched would be lost';
  if (await mark.set().catch(notMarked))
    onGap({ ...(heldUntil !== undefined && { since: heldUntil }), code: 'cut-off', reason });
  await poll();
  await mark.clear().catch(notMarked);
}

/**
 * A file that exists from before the first poll until the last one has been dealt with. One that is still there at a start
 * was left by a kill or a power cut: what a poll had fetched then is lost. It is written once, not for each poll: a
 * poll is in hand most of the time, so that a finer mark would spare few false reports for a sync of the disk each time.
 */
class PollMark {
  readonly #path: string;
  /** Another process may have marked meanwhile, which then receives. */
  readonly #own = crypto.randomUUID();

  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when the mark is on disk; true: an earlier one was left. Rejects with the disk's own error. */
  async set(): Promise<boolean> {
    const left = await this.#read();
    await writeFile(this.#path, this.#own, { mode: 0o600, flush: true });
    await syncFolder(dirname(this.#path));
    return left !== undefined;
  }

  async clear(): Promise<void> {
    if ((await this.#read()) === this.#own) await rm(this.#path, { force: true });
  }

  #read(): Promise<string | undefined> {
    return readFile(this.#path, 'utf8').catch(() => undefined);
  }
}

class PollLoop {
  readonly #deps: PollDeps;
  readonly #stopping: AbortSignal;
  readonly #cutting: AbortSignal;
  #failures = 0;

  constructor(deps: PollDeps, stopping: AbortSignal, cutting: AbortSignal) {
    this.#deps = deps;
    this.#stopping = stopping;
    this.#cutting = cutting;
  }

  async run(): Promise<void> {
    const { clock, config, isClear } = this.#deps;
    while (!this.#stopping.aborted) {
      const began = clock.now();
      const count = isClear() ? await this.#pollOnce() : 0;
      // Behind a full answer there may be more. A clock that was set back must not stretch the gap.
      const leastMs = count >= messagesAtOnce ? fullGapMs : shortestGapMs;
      const gapMs = leastMs - Math.max(0, clock.now() - began);
      const pauseMs = Math.max(gapMs, count === 0 ? config.pollPauseMs : 0);
      if (pauseMs > 0) await clock.wait(pauseMs, this.#stopping);
    }
  }

  /** How many messages it brought. */
  async #pollOnce(): Promise<number> {
    const { api, config, clock, number, onGap } = this.#deps;
    const since = clock.now();
    const query = new URLSearchParams({
      timeout: String(config.pollSeconds),
      max_messages: String(messagesAtOnce),
      ignore_stories: 'true',
      ignore_avatars: 'true',
      ignore_stickers: 'true',
    });
    try {
      const answer = await api.send('GET', `/v1/receive/${encodeURIComponent(number)}?${query}`, {
        signal: this.#cutting,
        timeoutMs: config.pollSeconds * 1000 + silenceMs,
      });
      if (answer.status === 200 && Array.isArray(answer.body))
        return await this.#handOver(answer.body, since);
      // A refusal in the server's own words took nothing; any other answer may stand for one that did.
      if (readError(answer) === undefined)
        onGap({ since, code: 'lost', reason: 'an answer to a poll could not be read' });
      await this.#failed(refusalReason(answer), longestBackoffMs);
    } catch (error) {
      const isAbsent = neverLeft(error);
      if (!isAbsent)
        onGap({
          since,
          code: 'cut-off',
          reason: 'a poll was cut off, and messages that it had fetched would be lost',
        });
      await this.#failed(networkReason(error), isAbsent ? longestAbsenceMs : longestBackoffMs);
    }
    return 0;
  }

  async #handOver(notifications: readonly unknown[], since: number): Promise<number> {
    this.#failures = 0;
    this.#deps.onTrouble(undefined);
    if (notifications.length > 0 && !(await this.#keep(notifications)))
      this.#deps.onGap({ since, code: 'lost', reason: 'neither store nor disk took it in time' });
    return notifications.length;
  }

  /** Nobody else has them: tried until they are safe, also while receiving stops. False: there was no more time. */
  async #keep(notifications: readonly unknown[]): Promise<boolean> {
    const { take, clock, log, onTrouble } = this.#deps;
    const pauses = { firstMs: firstBackoffMs, longestMs: longestAbsenceMs };
    for (let attempt = 1; !this.#cutting.aborted; attempt += 1) {
      try {
        await take(notifications);
        return true;
      } catch (error) {
        log.error({ attempt, error: String(error) }, 'signal.event-not-stored');
        onTrouble('a message can neither be stored nor kept in a file; free some disk space');
        await clock.wait(backoffMs(attempt, pauses), this.#cutting);
      }
    }
    return false;
  }

  async #failed(problem: string, longestMs: number): Promise<void> {
    this.#failures += 1;
    this.#deps.log.warn({ problem, failures: this.#failures }, 'signal.poll-failed');
    this.#deps.onTrouble(problem);
    await this.#deps.clock.wait(
      backoffMs(this.#failures, { firstMs: firstBackoffMs, longestMs }),
      this.#stopping,
    );
  }
}
