import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Config } from '../config/config.ts';
import { createModels, type Models, type ModelsDeps } from './models.ts';
import type { CallObserver } from './observers/call-observer.ts';
import type { Tracer } from './observers/spans.ts';
import { createProviderWaits, type ProviderWaits, type WaitingCalls } from './provider-waits.ts';

/** All configured models, with retries and their waiting calls. */
export type ConfiguredModel = {
  readonly models: Models;
  /** The default model's name, as shown to people. */
  readonly name: string;
  readonly isDemo: boolean;
  /** Records spans; absent unless tracing is on. */
  readonly tracer?: Tracer;
  /** Returns the calls that wait for a retry; absent if none ever does. */
  waiting?(): WaitingCalls;
};

type ModelDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly observers?: readonly CallObserver[];
  readonly noteWindow?: ModelsDeps['noteWindow'];
};

/** Creates the configured models; without a key, the labelled demo model. */
export function configuredModel(
  config: Pick<Config, 'providers' | 'models' | 'model' | 'agents'>,
  { clock, log, observers = [], noteWindow }: ModelDeps,
): ConfiguredModel {
  const waits = new Map<string, ProviderWaits>();
  const waitsOf = (provider: string): ProviderWaits => {
    const known = waits.get(provider) ?? createProviderWaits({ clock, random: Math.random });
    waits.set(provider, known);
    return known;
  };
  const models = createModels(config, { clock, log, waitsOf, observers, noteWindow });
  const isDemo = models.stackFor(config.model).id === 'demo';
  return {
    models,
    name: isDemo ? 'demo' : config.model,
    isDemo,
    waiting: () => sumOf([...waits.values()].map((each) => each.waiting())),
  };
}

function sumOf(all: readonly WaitingCalls[]): WaitingCalls {
  const since = all.flatMap((each) => (each.since === undefined ? [] : [each.since]));
  return {
    count: all.reduce((sum, { count }) => sum + count, 0),
    since: since.length > 0 ? Math.min(...since) : undefined,
  };
}
