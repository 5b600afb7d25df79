/**
 * Sends spans to an OpenTelemetry collector as OTLP over HTTP in JSON, which is a single POST. The SDK that does the
 * same has some twenty packages and was measured at 56 MB and 0.8 s of startup. Spans wait in memory for at most a few
 * seconds; those that the collector doesn't accept are lost.
 */
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { attributes, type Span, type Tracer } from './spans.ts';

/** A tracer that sends until it is closed. */
export type OtlpTracer = Tracer & {
  /** Sends what is waiting, for 2 s at most. */
  close(): Promise<void>;
};

/** How many spans may wait, how many go into one request, and the time between two requests, ms. */
const [maxWaiting, maxAtOnce, intervalMs] = [4_096, 512, 5_000] as const;
const [sendMs, closeMs] = [10_000, 2_000] as const;

/** Creates the tracer; nothing is sent before the first span. */
export function createOtlpTracer(deps: {
  /** Address of the collector; spans go to `/v1/traces` under it. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly fetch: typeof globalThis.fetch;
  redact(text: string): string;
}): OtlpTracer {
  const { clock, log } = deps;
  const url = `${deps.endpoint.replace(/\/+$/, '')}/v1/traces`;
  const closing = new AbortController();
  const waiting: Span[] = [];
  let sending: Promise<void> | undefined;
  let isFailing = false;

  const send = async (spans: readonly Span[], timeoutMs: number) => {
    const response = await deps.fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...deps.headers },
      body: deps.redact(JSON.stringify(bodyOf(spans, deps.version))),
      signal: AbortSignal.timeout(timeoutMs),
    });
    // Reading the body frees the connection.
    await response.text();
    if (!response.ok) throw new Error(`the collector answered ${response.status}`);
  };
  const flush = async (timeoutMs: number) => {
    while (waiting.length > 0) {
      const spans = waiting.splice(0, maxAtOnce);
      try {
        await send(spans, timeoutMs);
        isFailing = false;
      } catch (error) {
        // Logged once per outage.
        if (!isFailing) log.warn({ error, lost: spans.length }, 'tracing.failed');
        isFailing = true;
        return;
      }
    }
  };
  return {
    record: (span) => {
      if (waiting.length >= maxWaiting) waiting.shift();
      waiting.push(span);
      sending ??= clock
        .wait(intervalMs, closing.signal)
        .then(() => (closing.signal.aborted ? undefined : flush(sendMs)))
        .finally(() => {
          sending = undefined;
        });
    },
    close: async () => {
      closing.abort();
      await sending;
      await flush(closeMs);
    },
  };
}

/** `ExportTraceServiceRequest` (opentelemetry-proto, JSON encoding: ids in hex, times as text). */
function bodyOf(spans: readonly Span[], version: string): object {
  const resource = { attributes: listOf({ 'service.name': 'parley', 'service.version': version }) };
  const scope = { name: 'parley', version };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(wireSpan) }] }] };
}

/** Codes of the protocol. */
const [kinds, failed] = [{ internal: 1, client: 3 }, 2] as const;

function wireSpan({ parentId, error, ...span }: Span): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(parentId !== undefined && { parentSpanId: parentId }),
    name: span.name,
    kind: kinds[span.kind],
    startTimeUnixNano: `${span.startedAt}000000`,
    endTimeUnixNano: `${span.endedAt}000000`,
    attributes: listOf({ ...span.attributes, [attributes.error]: error }),
    status: error === undefined ? {} : { code: failed, message: error },
  };
}

function listOf(values: Span['attributes']): readonly object[] {
  return Object.entries(values).flatMap(([key, value]): readonly object[] => {
    if (value === undefined) return [];
    if (typeof value === 'string') return [{ key, value: { stringValue: value } }];
    return [{ key, value: Number.isInteger(value) ? { intValue: `${value}` } : { doubleValue: value } }];
  });
}
