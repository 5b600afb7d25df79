/** Keeps the lease of a bot account, for which one process receives at a time. */
import type { Clock } from '#contracts/clock.ts';
import { isStoreAway } from '#contracts/errors.ts';
import type { AccountLease } from '../store/processes/accounts.ts';

/** Interval of renewals, ms; a fifth of the lease. */
export const renewMs = 2_000;
/**
 * A store that is unreachable for at most this long, ms, ends no connection: `accept` checks the epoch, and events that
 * a network doesn't repeat wait in the adapter. After a longer time they would be too many to keep.
 */
const storeAwayMs = 60_000;

export type LeaseKeeping = {
  readonly clock: Clock;
  /** Claims the account again; its holder keeps the epoch. */
  claim(): Promise<AccountLease>;
  readonly epoch: number;
  /** Called after each renewal. */
  onKept(): void;
  /** Called for each renewal that the store didn't answer. */
  onAway(error: Error): void;
};

/**
 * Renews the lease, even while its adapter is starting, until another process has it or `until` aborts. Rejects when
 * the store has been unreachable for too long.
 */
export async function keepLease(
  { clock, claim, epoch, onKept, onAway }: LeaseKeeping,
  until: AbortSignal,
): Promise<void> {
  let keptAt = clock.now();
  for (;;) {
    await clock.wait(renewMs, until);
    if (until.aborted) return;
    const renewed = await claim().catch((error: unknown) => {
      if (!isStoreAway(error) || clock.now() - keptAt >= storeAwayMs) throw error;
      onAway(error);
    });
    if (renewed === undefined) continue;
    if (renewed.kind !== 'held' || renewed.epoch !== epoch) return;
    keptAt = clock.now();
    onKept();
  }
}
