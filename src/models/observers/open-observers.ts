import { join } from 'node:path';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { Config } from '../../config/config.ts';
import { revealAll } from '../../config/secret.ts';
import { bytesOf } from '../../config/units.ts';
import { outboundFetch } from '../../http/outbound-fetch.ts';
import type { CallObserver } from './call-observer.ts';
import type { Tracer } from './spans.ts';

export type ObserversDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  /** Removes secrets from a text. */
  redact(text: string): string;
};

/** Observers of this process's model calls. */
export type Observers = {
  readonly observers: readonly CallObserver[];
  readonly tracer: Tracer | undefined;
  /** Writes and sends what is waiting. */
  close(): Promise<void>;
};

/** Opens the observers that the configuration enables; nothing is loaded for the others. */
export async function openObservers(
  config: Pick<Config, 'tracing' | 'payloadLog' | 'dataDir'>,
  deps: ObserversDeps,
): Promise<Observers> {
  const traced = await openTracing(config, deps);
  const logged = await openPayloadLog(config, deps);
  return {
    observers: [...(traced ? [traced.calls] : []), ...(logged ? [logged] : [])],
    tracer: traced?.tracer,
    close: async () => {
      await Promise.all([traced?.tracer.close(), logged?.close()]);
    },
  };
}

async function openTracing(
  { tracing }: Pick<Config, 'tracing'>,
  { clock, log, version, redact }: ObserversDeps,
) {
  const { endpoint } = tracing;
  if (endpoint === undefined) return undefined;
  const [{ createOtlpTracer }, { tracedCalls }] = await Promise.all([
    import('./otlp-tracer.ts'),
    import('./traced-calls.ts'),
  ]);
  const headers = revealAll(tracing.headers);
  const tracer = createOtlpTracer({ clock, log, version, redact, endpoint, headers, fetch: outboundFetch });
  return { tracer, calls: tracedCalls(tracer, clock) };
}

async function openPayloadLog(
  { payloadLog, dataDir }: Pick<Config, 'payloadLog' | 'dataDir'>,
  deps: ObserversDeps,
) {
  if (!payloadLog.enabled) return undefined;
  const [{ createPayloadLog }, { createRotatingFile }] = await Promise.all([
    import('./payload-log.ts'),
    import('../../logging/rotating-file.ts'),
  ]);
  const path = join(dataDir, 'payloads.jsonl');
  deps.log.warn({ path }, 'payload-log.opened');
  return createPayloadLog({ ...deps, file: createRotatingFile(path, bytesOf(payloadLog.maxMb)) });
}
