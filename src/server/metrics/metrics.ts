import { rememberSuccess } from '#channel-kit/remember-success.ts';
import type { Acceptance } from '#contracts/acceptance.ts';
import type { DeliveredPart, MetricsDeps, Registry } from './registry.ts';

/** The figures of this process. */
export interface Metrics {
  /** The text of `/metrics`, in the format of Prometheus. Never rejects for a store that is away. */
  metrics(): Promise<string>;
  /** Costs nothing until somebody has asked for the metrics once. */
  delivered(part: DeliveredPart): void;
  /** Counts a message dropped from a full lane; costs as little. */
  overflowed(drop: string): void;
  /** Counts a report that messages of a channel may have been missed, or could not be read; the same. */
  missed(channel: string): void;
  /** Counts what intake has decided about events of a channel; the same. */
  received(channel: string, acceptances: readonly Acceptance[]): void;
}

/** Nothing is loaded, counted or kept before the first call of `metrics`: a process nobody asks stays as small. */
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
