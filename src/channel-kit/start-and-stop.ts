import type { ChannelAdapter, Intake } from '#contracts/channel.ts';
import { createMutex } from './in-turn.ts';

/** The two halves of an adapter's receiving; they are never in progress at the same time. */
export type ReceivingSteps = {
  /** Starts to receive. If aborted, `end` follows immediately, so it must not wait any longer. */
  begin(intake: Intake, signal: AbortSignal): Promise<void>;
  /** Ends whatever was started, even by a `begin` that failed; there may be nothing to end. */
  end(): Promise<void>;
};

/**
 * Runs `start` and `stop` one after another: a stop during a start, as when the account's lease is lost or the start
 * takes too long, ends what that start begins. Otherwise an untracked connection would stay open.
 */
export function startAndStop({ begin, end }: ReceivingSteps): Pick<ChannelAdapter, 'start' | 'stop'> {
  let tenure = new AbortController();
  const inTurn = createMutex();
  return {
    start: (intake) => {
      tenure.abort();
      tenure = new AbortController();
      const { signal } = tenure;
      return inTurn(async () => {
        await end();
        if (!signal.aborted) await begin(intake, signal);
      });
    },
    stop: () => {
      tenure.abort();
      return inTurn(end);
    },
  };
}
