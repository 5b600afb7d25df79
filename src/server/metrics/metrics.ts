import { rememberSuccess } from '#channel-kit/keep-recent.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { DeliveredPart, MetricsDeps, Registry } from './registry.ts';

/** The metrics of this process. */
export interface Metrics {
  /** Returns the text of `/metrics`, in Prometheus format. Never rejects because the store is unreachable. */
  metrics(): Promise<string>;
  /** Counts a delivery attempt. Like the others below, it costs nothing before the first call of `metrics`. */
  delivered(part: DeliveredPart): void;
  /** Counts a message dropped from a full lane. */
  overflowed(drop: string): void;
  /** Counts a report that messages of a channel may have been missed, or couldn't be read. */
  missed(channel: string): void;
  /** Counts intake's decisions about events of a channel. */
  received(channel: string, acceptances: readonly Acceptance[]): void;
}

/** Creates the metrics. Nothing is loaded, counted or kept before the first call of `metrics`, to save memory. */
export function createMetrics(deps: MetricsDeps): Metrics {
  let registry: Registry | undefined;
  const load = rememberSuccess(async () => {
    const { createRegistry } = await import('./registry.ts');
    registry = createRegistry(deps);
    return registry;
  });
  return {
    metrics: async () => (await load()).text(),
    delivered: (part) => registry?.delivered(part),
    overflowed: (drop) => registry?.overflowed(drop),
    missed: (channel) => registry?.missed(channel),
    received: (channel, acceptances) => registry?.received(channel, acceptances),
  };
}
