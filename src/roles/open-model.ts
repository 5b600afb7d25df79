import type { Clock } from '#contracts/clock.ts';
import { secretsOf } from '../config/secrets-of.ts';
import { createRedactor } from '../logging/redaction.ts';
import { type ConfiguredModel, configuredModel } from '../models/configured-model.ts';
import { openObservers } from '../models/observers/open-observers.ts';
import type { Closers } from '../processes/closers.ts';
import type { Store } from '../store/base/command.ts';
import { createKeyAlerts, createToolAlerts } from './model-alerts.ts';
import type { GatewayOptions } from './stage-deps.ts';

/** The models that answer in this process, with the tracing and the payload log that the configuration turns on. */
export async function openModel(
  options: GatewayOptions & { readonly store: Store; readonly clock: Clock; readonly closers: Closers },
): Promise<ConfiguredModel> {
  const { config, clock, log, closers } = options;
  if (options.model) return options.model;
  const redact = options.redact ?? createRedactor(secretsOf(config)).redact;
  const { observers, tracer, close } = await openObservers(config, { ...options, redact });
  closers.add('model observers', close);
  const alerts = [createKeyAlerts(options), createToolAlerts(options)];
  const model = configuredModel(config, { clock, log, observers: [...observers, ...alerts] });
  return { ...model, ...(tracer && { tracer }) };
}
