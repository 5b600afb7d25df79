import type { InboundBatch, Intake } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import { hasCode } from '#contracts/errors.ts';

/**
 * Hands a batch over until it is stored. False when receiving has to end: stopped, or another process has
 * the account. Nothing after the batch may be handed over before this resolves, and nothing of it be
 * acknowledged.
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
