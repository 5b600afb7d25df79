import type { Config } from '../config/config.ts';
import { createModels, type Models, type ModelsDeps } from './models.ts';
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

type ModelDeps = Pick<ModelsDeps, 'clock' | 'log' | 'observers' | 'noteWindow' | 'noteKey'>;

/** Creates the configured models; without a key, the labelled demo model. */
export function configuredModel(
  config: Pick<Config, 'providers' | 'models' | 'model' | 'agents'>,
  deps: ModelDeps,
): ConfiguredModel {
  const { clock } = deps;
  const waits = new Map<string, ProviderWaits>();
  const waitsOf = (provider: string): ProviderWaits => {
    const known = waits.get(provider) ?? createProviderWaits({ clock, random: Math.random });
    waits.set(provider, known);
    return known;
  };
  const models = createModels(config, { ...deps, waitsOf });
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
