import type { InboundBatch, Intake } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode } from '#contracts/errors.ts';

/**
 * Hands a batch over until it is stored. Resolves with false if receiving has to end: it was stopped, or another
 * process has the account. Until it resolves, nothing after the batch may be handed over, and nothing in the batch may
 * be acknowledged.
 */
export async function handOver(
  intake: Intake,
  batch: InboundBatch,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<boolean> {
  for (let attempt = 1; !signal.aborted; attempt++) {
    try {
      await intake.accept(batch);
      return true;
    } catch (error) {
      if (hasCode(error, 'stale_epoch')) return false;
      await clock.wait(Math.min(30_000, 500 * 2 ** (attempt - 1)), signal);
    }
  }
  return false;
}
