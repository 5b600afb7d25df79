import {
  type AgentMessage,
  finishReasonOf,
  type MessagePart,
  type ToolCallData,
  toolCallsOf,
  unknownOutcome,
} from '#contracts/message.ts';
import { UnusedIds } from './unused-id.ts';

/** A tool call with its one result, under the id that the request uses for both. */
export type PairedCall = {
  readonly call: ToolCallData;
  readonly wireId: string;
  readonly content: string;
  readonly isError: boolean;
  /** Images the tool gave back. */
  readonly images: readonly MessagePart[];
};

/** An answer that a crash cut off never counted; the run that resumes writes it anew. */
export function isCounted(message: AgentMessage): boolean {
  const reason = finishReasonOf(message.parts);
  return message.role !== 'assistant' || (reason !== undefined && reason !== 'interrupted');
}

/**
 * The calls of each message with their results, in source order; aligned with `messages`, empty where there
 * are none. A result belongs to the last call of its id before it, the first result of a call counts, a call
 * without one gets `unknownOutcome`. Results that belong to nothing appear nowhere.
 */
export function pairCalls(messages: readonly AgentMessage[]): readonly (readonly PairedCall[])[] {
  const open = new Map<string, OpenCall>();
  const found = messages.map((message) => {
    if (message.role === 'tool') takeResult(message, open);
    return message.role === 'assistant' ? openCalls(message, open) : [];
  });
  const wireIds = createWireIds();
  return found.map((calls) => calls.map((call) => pairOf(call, wireIds(call.call.id))));
}

type OpenCall = { readonly call: ToolCallData; result?: AgentMessage };

function openCalls(message: AgentMessage, open: Map<string, OpenCall>): readonly OpenCall[] {
  const calls = new Map<string, OpenCall>();
  for (const call of toolCallsOf(message.parts)) {
    if (!calls.has(call.id)) calls.set(call.id, { call });
  }
  // Also for an answer that does not count: its results are not those of an earlier call of the same id.
  for (const [id, call] of calls) open.set(id, call);
  return isCounted(message) ? [...calls.values()] : [];
}

function takeResult(message: AgentMessage, open: ReadonlyMap<string, OpenCall>): void {
  const slot = open.get(resultOf(message)?.tool_call_id ?? '');
  if (slot !== undefined) slot.result ??= message;
}

function resultOf(message: AgentMessage) {
  return message.parts.find((part) => part.type === 'tool_result')?.data;
}

function pairOf({ call, result }: OpenCall, wireId: string): PairedCall {
  const data = result === undefined ? undefined : resultOf(result);
  return {
    call,
    wireId,
    content: data?.content ?? unknownOutcome,
    isError: data?.is_error ?? true,
    images: result?.parts.filter(({ type }) => type === 'image_url' || type === 'binary') ?? [],
  };
}

/** Longer ids are cut, UTF-16 units: OpenAI takes 40, what tells equal ones apart included. */
const maxIdLength = 36;

/** Providers want ids of these letters only, and no id twice in one history. */
function createWireIds(): (id: string) => string {
  const ids = new UnusedIds(new Set());
  return (id) => ids.take(id.slice(0, maxIdLength).replaceAll(/[^\w-]/g, '_') || 'call');
}
