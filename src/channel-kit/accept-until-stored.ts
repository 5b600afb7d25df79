import type { Acceptance } from '#contracts/acceptance.ts';
import type { InboundBatch, Intake } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode } from '#contracts/errors.ts';
import type { Log } from '#contracts/log.ts';
import { backoffMs } from './backoff.ts';

const pauses = { firstMs: 500, longestMs: 5_000 };

/** Passes a batch to the intake until it is stored. Returns undefined if it wasn't and so must not be acknowledged. */
export async function acceptUntilStored(
  batch: InboundBatch,
  deps: {
    readonly accept: Intake['accept'];
    readonly clock: Clock;
    readonly log: Log;
    /** For the log. */
    readonly channel: string;
    /** Ends the attempts. */
    readonly signal: AbortSignal;
    /** Called when another process now receives for the account. */
    onTakenOver(): void;
  },
): Promise<readonly Acceptance[] | undefined> {
  const { accept, clock, log, channel, signal, onTakenOver } = deps;
  for (let attempt = 1; !signal.aborted; attempt += 1) {
    try {
      return await accept(batch);
    } catch (error) {
      if (hasCode(error, 'stale_epoch')) {
        log.info({ channel }, 'channel.account-taken-over');
        onTakenOver();
        return undefined;
      }
      log.warn({ channel, attempt, error: String(error) }, 'channel.accept-failed');
      await clock.wait(backoffMs(attempt, pauses), signal);
    }
  }
  return undefined;
}
