/** How the lease of a bot account is kept: one process receives for it at a time. */
import type { Clock } from '#contracts/clock.ts';
import { isStoreAway } from '#contracts/errors.ts';
import type { AccountLease } from '../store/processes/accounts.ts';

/** Between two renewals, ms; a fifth of the lease. */
export const renewMs = 2_000;
/**
 * A store that is away for no longer ends no connection: `accept` looks at the epoch, and what a network doesn't tell
 * twice waits in the adapter. After that it would be too much to hold.
 */
const storeAwayMs = 60_000;

export type LeaseKeeping = {
  readonly clock: Clock;
  /** Claims again; the holder itself keeps its epoch. */
  claim(): Promise<AccountLease>;
  readonly epoch: number;
  /** Called after each renewal. */
  onKept(): void;
  /** Called for each renewal that the store didn't answer. */
  onAway(error: Error): void;
};

/**
 * Renews the lease, also while its adapter is only starting, until somebody else has it or `until`. Rejects when the
 * store has been away for too long.
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
