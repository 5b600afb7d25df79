/** Spans as OpenTelemetry names them, and all names that Parley gives them: those of `gen_ai` may still change. */
import { createHash, randomBytes } from 'node:crypto';

/** Takes spans that are over; exports them later or drops them. Never throws. */
export interface Tracer {
  record(span: Span): void;
}

/** Times are ms since the epoch. It holds names, counts and ids, never what was said. */
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

/** Attributes, by the same conventions where they have one. */
export const attributes = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  conversation: 'gen_ai.conversation.id',
  agent: 'gen_ai.agent.id',
  /** Cached ones included. */
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

/** The trace of a run, whichever process works on it: its id without hyphens. */
export function traceIdOf(runId: string): string {
  const id = runId.replaceAll('-', '').toLowerCase();
  return /^[0-9a-f]{32}$/.test(id) ? id : hashOf(runId).slice(0, 32);
}

/** The span of one attempt at a run. */
export function runSpanId(runId: string, epoch: number): string {
  return hashOf(`${runId}:${epoch}`).slice(0, 16);
}

/** A span that nothing refers to. */
export function newSpanId(): string {
  return randomBytes(8).toString('hex');
}

/** A trace of its own. */
export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
