import type { Clock } from '#contracts/clock.ts';
import type { Store } from '../../store/command.ts';
import type { Registry } from './registry.ts';

export type MetricsDeps = {
  readonly store: Store;
  readonly clock: Clock;
  isRedisReady(): boolean;
};

/** A part whose call to the platform has ended. Times in ms. */
export type DeliveredPart = {
  readonly channel: string;
  /** `sent`, `unknown`, `failed` or another end of the try. */
  readonly result: string;
  /** From the commit that stored it to the platform's answer. */
  readonly ageMs: number;
};

export interface Metrics {
  /** The text of `/metrics`, in the format of Prometheus. Never rejects for a store that is away. */
  metrics(): Promise<string>;
  /** Costs nothing until somebody has asked for the metrics once. */
  delivered(part: DeliveredPart): void;
}

/** Nothing is loaded, counted or kept before the first call of `metrics`: a process nobody asks stays as small. */
export function createMetrics(deps: MetricsDeps): Metrics {
  let loading: Promise<Registry> | undefined;
  let registry: Registry | undefined;
  const load = async (): Promise<Registry> => {
    const { createRegistry } = await import('./registry.ts');
    registry = createRegistry(deps);
    return registry;
  };
  return {
    metrics: async () => {
      loading ??= load();
      return (await loading).text();
    },
    delivered: (part) => registry?.delivered(part),
  };
}
