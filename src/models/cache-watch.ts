/**
 * Compares why Anthropic's server couldn't reuse what it had cached of a conversation with what Parley has changed since
 * that conversation's previous request. A reason that names a part which Parley sent unchanged is unexplained.
 */
import { createHash, type Hash } from 'node:crypto';
import type {
  CacheMissReason,
  Diagnostics,
  DiagnosticsParam,
  MessageCreateParamsBase,
} from '@anthropic-ai/sdk/resources/messages/messages';
import type { CacheMiss, ModelRequest, PromptPart } from '#contracts/model.ts';

/** The part of a request that each reason is about. `messages`: up to the end of the previous request. */
const partOf = {
  model_changed: 'model',
  system_changed: 'system',
  tools_changed: 'tools',
  messages_changed: 'messages',
  previous_message_not_found: undefined,
  // Also given where only the settings of reasoning differ.
  unavailable: undefined,
} as const satisfies Readonly<Record<CacheMissReason['type'], PromptPart | undefined>>;

const parts: ReadonlyMap<string, PromptPart | undefined> = new Map(Object.entries(partOf));

/** A conversation's last answered request: the id of its answer and hashes of its parts. */
type Sent = {
  readonly id: string;
  readonly model: string;
  readonly system: string;
  readonly tools: string;
  readonly messages: { readonly count: number; readonly hash: string };
};

/** The beginning of a server's answer. `model`: the one that answers. */
export type AnswerHead = {
  readonly id: string;
  readonly model: string;
  readonly diagnostics: Diagnostics | null | undefined;
};

/** Conversations whose last request is remembered; a forgotten one begins again. */
const maxConversations = 1_000;
const longestReason = 100;
const prefixLength = 12;
/** UTF-16 units. */
const endLength = 200;

/** Watches the conversations with one model of Anthropic's own server. */
export class CacheWatch {
  /** By conversation, in the order of their last answers. */
  readonly #sent = new Map<string, Sent>();

  /** Returns what has the server compare a request with the conversation's previous one. */
  ask({ conversation }: ModelRequest): DiagnosticsParam | undefined {
    if (conversation === undefined) return undefined;
    return { previous_message_id: this.#sent.get(conversation)?.id ?? null };
  }

  /** Records an answered request as it was sent. Returns why it wasn't read from the cache, if the server says so. */
  answered(
    { conversation }: ModelRequest,
    wire: MessageCreateParamsBase,
    head: AnswerHead,
  ): CacheMiss | undefined {
    if (conversation === undefined || head.id === '') return undefined;
    const before = this.#sent.get(conversation);
    const { sent, messagesBefore } = sentOf(wire, head, before?.messages.count ?? 0);
    this.#sent.delete(conversation);
    this.#sent.set(conversation, sent);
    if (this.#sent.size > maxConversations) this.#sent.delete(this.#sent.keys().next().value ?? '');
    const reason = reasonIn(head.diagnostics);
    if (before === undefined || reason === undefined) return undefined;
    const changed = [
      ...(['model', 'system', 'tools'] as const).filter((part) => sent[part] !== before[part]),
      ...(messagesBefore === before.messages.hash ? [] : (['messages'] as const)),
    ];
    const part = parts.get(reason);
    const isUnexplained = part !== undefined && !changed.includes(part);
    const { model, system, tools } = sent;
    const prefix = sketchHash([model, system, tools, messagesBefore]).slice(0, prefixLength);
    return { reason, changed, prefix, ...(isUnexplained && { isUnexplained }) };
  }
}

/** `messagesBefore`: the hash of the first `count` messages; undefined if there are fewer. */
function sentOf(
  { model, system, tools, messages }: MessageCreateParamsBase,
  head: AnswerHead,
  count: number,
): { readonly sent: Sent; readonly messagesBefore: string | undefined } {
  const hash = createHash('sha1');
  let messagesBefore: string | undefined;
  for (const [index, { role, content }] of messages.entries()) {
    if (index === count) messagesBefore = digestOf(hash.copy());
    hash.update(role + sketchOf(content));
  }
  const whole = digestOf(hash);
  if (count === messages.length) messagesBefore = whole;
  const sent = {
    id: head.id,
    // An alias may lead to another model without any change here.
    model: `${model} ${head.model}`,
    system: sketchHash(system),
    tools: sketchHash(tools),
    messages: { count: messages.length, hash: whole },
  };
  return { sent, messagesBefore };
}

function sketchHash(value: unknown): string {
  return digestOf(createHash('sha1').update(sketchOf(value)));
}

/**
 * Returns what tells a value from others, without cache marks, which move on with each request. Of a long text its
 * length and its ends are enough: all of a long history would take several milliseconds.
 */
function sketchOf(value: unknown): string {
  if (typeof value === 'string') return `${value.length}:${endsOf(value)}`;
  if (typeof value !== 'object' || value === null) return String(value);
  let sketch = '';
  for (const [key, each] of Object.entries(value))
    if (key !== 'cache_control') sketch += `${key}=${sketchOf(each)},`;
  return `{${sketch}}`;
}

function endsOf(text: string): string {
  return text.length <= 2 * endLength ? text : text.slice(0, endLength) + text.slice(-endLength);
}

function digestOf(hash: Hash): string {
  return hash.digest('base64url');
}

/** Returns the server's reason; undefined if it has none, or none yet. It may be one that the SDK doesn't list. */
function reasonIn(diagnostics: Diagnostics | null | undefined): string | undefined {
  const type: unknown = diagnostics?.cache_miss_reason?.type;
  return typeof type === 'string' && type !== '' ? type.slice(0, longestReason) : undefined;
}
