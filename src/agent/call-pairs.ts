import {
  type AgentMessage,
  finishReasonOf,
  type MessagePart,
  type ToolCallData,
  toolCallsOf,
  unknownOutcome,
} from '#contracts/message.ts';

/** A tool call with its single result, and the id that the request uses for both. */
export type PairedCall = {
  readonly call: ToolCallData;
  readonly wireId: string;
  readonly content: string;
  readonly isError: boolean;
  /** Images returned by the tool. */
  readonly images: readonly MessagePart[];
};

/** Says whether the message counts. An answer cut off by a crash doesn't: the resumed run writes it again. */
export function isCounted(message: AgentMessage): boolean {
  const reason = finishReasonOf(message.parts);
  return message.role !== 'assistant' || (reason !== undefined && reason !== 'interrupted');
}

/**
 * Pairs the calls of each message with their results, in source order. The list is aligned with `messages`, and empty
 * for messages without calls. A result belongs to the latest earlier call with its id; only a call's first result
 * counts, and a call without one gets `unknownOutcome`. Results without a call are dropped.
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
  // Also for an answer that doesn't count, so its results aren't taken for those of an earlier call with the same id.
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

/** Longer ids are cut, UTF-16 units: OpenAI accepts 40, including the suffix that makes equal ones distinct. */
const maxIdLength = 36;

/** Providers accept only these characters in ids, and each id only once per history. */
function createWireIds(): (id: string) => string {
  const ids = new UnusedIds(new Set());
  return (id) => ids.take(id.slice(0, maxIdLength).replaceAll(/[^\w-]/g, '_') || 'call');
}

/**
 * Finds an unused id: the wanted one, or the same with a suffix `_2`, `_3` and so on. It remembers how far it has
 * counted, because some providers give every call the same id.
 */
export class UnusedIds {
  readonly #taken: Set<string>;
  readonly #counted = new Map<string, number>();

  /** Ids in use; each id returned is added. */
  constructor(taken: Set<string>) {
    this.#taken = taken;
  }

  take(wanted: string): string {
    let id = wanted;
    let suffix = this.#counted.get(wanted) ?? 1;
    while (this.#taken.has(id)) {
      suffix += 1;
      id = `${wanted}_${suffix}`;
    }
    this.#counted.set(wanted, suffix);
    this.#taken.add(id);
    return id;
  }
}
