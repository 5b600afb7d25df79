import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { ExampleConfig } from './config.ts';

export type ReceiverDeps = {
  readonly config: ExampleConfig;
  readonly account: string;
  readonly clock: Clock;
  readonly log: Log;
};

export interface Receiver {
  /** Resolves once no further `accept` will be called. */
  stop(): Promise<void>;
}
