import { type ConfiguredModel, configuredModel } from '../models/configured-model.ts';
import { openObservers } from '../models/observers/open-observers.ts';
import { createCacheAlerts, createKeyAlerts, createToolAlerts, createWindowAlerts } from './model-alerts.ts';
import type { GatewayOptions, StageDeps } from './stage-deps.ts';

/** Opens the models of this process, with tracing and the payload log if the configuration turns them on. */
export async function openModel(
  options: GatewayOptions & Pick<StageDeps, 'store' | 'clock' | 'closers' | 'redact'>,
): Promise<ConfiguredModel> {
  const { config, clock, log, closers } = options;
  if (options.model) return options.model;
  const { observers, tracer, close } = await openObservers(config, options);
  closers.add('model observers', close);
  const { observer, noteKey } = createKeyAlerts(options);
  const model = configuredModel(config, {
    ...{ clock, log, noteKey },
    observers: [...observers, observer, createToolAlerts(options), createCacheAlerts(options)],
    noteWindow: createWindowAlerts(options),
  });
  return { ...model, ...(tracer && { tracer }) };
}
