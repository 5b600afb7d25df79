/** Spans in OpenTelemetry's sense, and all names that Parley uses in them; the `gen_ai` names may still change. */
import { createHash, randomBytes } from 'node:crypto';

/** Accepts finished spans, and exports them later or drops them. Never throws. */
export interface Tracer {
  record(span: Span): void;
}

/** A finished operation; times are ms since the epoch. It contains names, counts and ids, never message texts. */
export type Span = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string | undefined;
  readonly name: string;
  readonly kind: 'client' | 'internal';
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  /** Kind of the fault. */
  readonly error?: string | undefined;
};

/** Operations, by OpenTelemetry's conventions for generative AI. */
export const operations = { call: 'chat', run: 'invoke_agent', tool: 'execute_tool' } as const;

/** Attributes, by the same conventions where they define one. */
export const attributes = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  conversation: 'gen_ai.conversation.id',
  agent: 'gen_ai.agent.id',
  /** Includes cached tokens. */
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  tool: 'gen_ai.tool.name',
  toolCall: 'gen_ai.tool.call.id',
  error: 'error.type',
  run: 'parley.run.id',
  purpose: 'parley.purpose',
  /** Micro-dollars. */
  cost: 'parley.cost',
  endReason: 'parley.end_reason',
} as const;

/** Returns the trace of a run, the same in every process that works on it: its id without hyphens. */
export function traceIdOf(runId: string): string {
  const id = runId.replaceAll('-', '').toLowerCase();
  return /^[0-9a-f]{32}$/.test(id) ? id : hashOf(runId).slice(0, 32);
}

/** Returns the span id of one attempt at a run. */
export function runSpanId(runId: string, epoch: number): string {
  return hashOf(`${runId}:${epoch}`).slice(0, 16);
}

/** Creates the id of a span that nothing refers to. */
export function newSpanId(): string {
  return randomBytes(8).toString('hex');
}

/** Creates the id of a separate trace. */
export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
