/**
 * Receiving in normal and native mode. signal-cli confirms messages to Signal before it has returned them, so the
 * messages in an answer exist only here. Therefore few are requested at a time, no poll is cut off, and no poll is made
 * while the store can't accept what it would return.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { backoffMs } from '#channel-kit/backoff.ts';
import { neverLeft } from '#channel-kit/network-fault.ts';
import { shortestGapMs } from '#channel-kit/remote-number.ts';
import type { ChannelDeps, ChannelGap } from '#contracts/channel.ts';
import type { SignalApi } from './api.ts';
import type { SignalConfig } from './config.ts';
import { isKilled, networkReason, readError, refusalReason } from './failures.ts';
import { messagesBefore } from './frame.ts';
import { syncFolder } from './spool.ts';

export type PollDeps = Pick<ChannelDeps, 'clock' | 'log'> & {
  readonly api: Pick<SignalApi, 'send'>;
  readonly number: string;
  readonly config: Pick<SignalConfig, 'pollSeconds' | 'pollPauseMs'>;
  /** The file that marks that polls are being made. */
  readonly markPath: string;
  /** Until when messages for the account were received, ms since the epoch. */
  readonly heldUntil?: number | undefined;
  /** Says whether a poll's messages can be stored now. */
  isClear(): boolean;
  /** Resolves when the messages are safe. */
  take(notifications: readonly unknown[]): Promise<void>;
  onTrouble(problem: string | undefined): void;
  onGap(gap: ChannelGap): void;
  /** How long a stop waits for a poll in flight and its messages, ms. Default: 10 s. */
  readonly lastPollMs?: number;
};

export type Poll = { stop(): Promise<void> };

/** How many messages one lost answer may cost. */
const messagesAtOnce = 10;
/** Pause between full answers, ms: 100 messages a second, even if a server repeats the same ones forever. */
const fullGapMs = 100;
/** signal-cli may take this long, ms, in addition to the poll itself: SIGNAL_CLI_CMD_TIMEOUT is 120 s. */
const silenceMs = 130_000;
/** How long a stop waits for the last poll, ms: if it were cut off, its messages would be lost. */
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

/** Polls, and reports what a kill may have cut off. If the disk accepts no mark, only that report is missing. */
async function pollMarked({ markPath, heldUntil, log, onGap }: PollDeps, poll: () => Promise<void>) {
  const mark = new PollMark(markPath);
  const notMarked = (error: unknown) => {
    log.warn({ error: String(error) }, 'signal.poll-not-marked');
    return false;
  };
  const reason = 'Parley was killed while it was polling; any messages that a poll had fetched are lost';
  if (await mark.set().catch(notMarked))
    onGap({ ...(heldUntil !== undefined && { since: heldUntil }), code: 'cut-off', reason });
  await poll();
  await mark.clear().catch(notMarked);
}

/**
 * A file that exists from before the first poll until the last one has been handled. If it still exists at a start, a
 * kill or a power cut left it there, and what a poll had fetched is lost. It is written once, not for each poll: a poll
 * is running most of the time, so a finer mark would avoid few false reports, at the cost of a disk sync each time.
 */
class PollMark {
  readonly #path: string;
  /** Distinguishes this process's mark from that of another one, which may have taken over receiving. */
  readonly #own = crypto.randomUUID();

  constructor(path: string) {
    this.#path = path;
  }

  /** Resolves when the mark is on disk, with true if an earlier one was left. Rejects with the disk's own error. */
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
      // After a full answer there may be more. A clock that was set back must not lengthen the gap.
      const minMs = count >= messagesAtOnce ? fullGapMs : shortestGapMs;
      const gapMs = minMs - Math.max(0, clock.now() - began);
      const pauseMs = Math.max(gapMs, count === 0 ? config.pollPauseMs : 0);
      if (pauseMs > 0) await clock.wait(pauseMs, this.#stopping);
    }
  }

  /** Polls once and returns how many messages arrived. */
  async #pollOnce(): Promise<number> {
    const { api, config, clock, log, number, onGap } = this.#deps;
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
      const error = readError(answer)?.error;
      // If signal-cli failed, the server's error contains all lines that it wrote.
      const found = messagesBefore(
        error === undefined ? String(answer.body) : `[${error.replaceAll('\n', ',')}`,
      );
      if (found.length > 0) {
        log.warn({ status: answer.status, messages: found.length }, 'signal.poll-mixed');
        return await this.#handOver(found, since);
      }
      // If the server refused in its own words, it fetched nothing; any other answer may hide lost messages.
      if (error === undefined || isKilled(error))
        onGap({ since, code: 'lost', reason: 'an answer to a poll could not be read' });
      await this.#failed(refusalReason(answer), longestBackoffMs);
    } catch (error) {
      const isAbsent = neverLeft(error);
      if (!isAbsent)
        onGap({
          since,
          code: 'cut-off',
          reason: 'a poll was cut off; any messages that it had fetched are lost',
        });
      await this.#failed(networkReason(error), isAbsent ? longestAbsenceMs : longestBackoffMs);
    }
    return 0;
  }

  async #handOver(notifications: readonly unknown[], since: number): Promise<number> {
    this.#failures = 0;
    this.#deps.onTrouble(undefined);
    if (notifications.length > 0 && !(await this.#keep(notifications)))
      this.#deps.onGap({
        since,
        code: 'lost',
        reason: 'neither the store nor the disk accepted them in time',
      });
    return notifications.length;
  }

  /** Retries until the messages are safe, even during a stop: nobody else has them. False: there was no time left. */
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
