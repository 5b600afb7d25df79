import type { ChannelAdapter, Intake } from '#contracts/channel.ts';
import { workingInTurn } from './in-turn.ts';

/** The two halves of an adapter's receiving; neither is called while the other is under way. */
export type ReceivingSteps = {
  /** Begins to receive. Aborted: it is to be ended at once, so nothing is waited for any more. */
  begin(intake: Intake, signal: AbortSignal): Promise<void>;
  /** Ends whatever was begun, were it by a `begin` that failed, or nothing at all. */
  end(): Promise<void>;
};

/**
 * `start` and `stop` in turn: a stop that comes during a start, as when the account's lease is lost or the start takes too
 * long, ends what that start begins. Without this a connection that nobody knows of would go on.
 */
export function startAndStop({ begin, end }: ReceivingSteps): Pick<ChannelAdapter, 'start' | 'stop'> {
  let tenure = new AbortController();
  const inTurn = workingInTurn();
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
