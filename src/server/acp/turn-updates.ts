/** Tells an editor what happens while its prompt is answered, from the events of the conversation's feed. */
import type { SessionUpdate, ToolCallStatus, ToolKind } from '@agentclientprotocol/sdk';
import type { FeedEvent } from '#contracts/feed.ts';
import { Deltas } from '../openai/deltas.ts';

type EventOf<Kind extends FeedEvent['kind']> = Extract<FeedEvent, { kind: Kind }>;

/** Updates of one prompt; a chunk of text is never taken back. */
export class TurnUpdates {
  readonly #send: (update: SessionUpdate) => Promise<void>;
  readonly #deltas = new Deltas();
  /** The message that the model is writing. */
  #message = '';
  readonly #calls = new Map<string, ToolCallStatus>();

  /** `shown`: what the editor has of the present message, if the prompt is a repeat. */
  constructor(send: (update: SessionUpdate) => Promise<void>, shown: string) {
    this.#send = send;
    this.#deltas.take(shown);
  }

  async tell(event: FeedEvent): Promise<void> {
    if (event.kind === 'text') await this.#write(event);
    if (event.kind === 'tool') await this.#showCall(event);
    if (event.kind === 'output' && this.#calls.has(event.callId))
      await this.#send({
        sessionUpdate: 'tool_call_update',
        toolCallId: event.callId,
        content: [textContent(event.text)],
      });
  }

  /** Shows a call that waits for an answer. */
  async ask(callId: string, name: string): Promise<void> {
    await this.#showState(callId, name, 'pending');
  }

  /** Sends what is missing of the answer. */
  async finish(text: string): Promise<void> {
    await this.#append(this.#deltas.finish(text));
  }

  async #write({ of, at, text }: EventOf<'text'>): Promise<void> {
    if (of === 'reasoning' && text !== '')
      await this.#send({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text } });
    // Something before it was missed; the end of the run has the whole text.
    if (of !== 'chat' || at > this.#message.length) return;
    this.#message = this.#message.slice(0, at) + text;
    await this.#append(this.#deltas.take(this.#message));
  }

  async #append(text: string): Promise<void> {
    if (text !== '')
      await this.#send({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
  }

  async #showCall({ callId, name, state }: EventOf<'tool'>): Promise<void> {
    if (callId !== undefined) await this.#showState(callId, name, statusOf(state));
  }

  async #showState(toolCallId: string, name: string, status: ToolCallStatus): Promise<void> {
    const known = this.#calls.get(toolCallId);
    if (known === status) return;
    this.#calls.set(toolCallId, status);
    const call = { toolCallId, title: name, kind: kindOf(name), status };
    if (known === undefined) await this.#send({ sessionUpdate: 'tool_call', ...call });
    else await this.#send({ sessionUpdate: 'tool_call_update', toolCallId, status });
  }
}

function statusOf(state: EventOf<'tool'>['state']): ToolCallStatus {
  if (state === 'started') return 'in_progress';
  return state === 'done' ? 'completed' : 'failed';
}

/** Returns a text as the content of a tool call. */
export function textContent(text: string) {
  return { type: 'content', content: { type: 'text', text } } as const;
}

const kinds: Readonly<Record<string, ToolKind>> = {
  ...{ read: 'read', view: 'read', list: 'read', memory_get: 'read' },
  ...{ glob: 'search', grep: 'search', code_search: 'search', web_search: 'search' },
  ...{ write: 'edit', edit: 'edit', bash: 'execute', web_fetch: 'fetch' },
};

/** Returns the kind by which editors choose an icon. */
export function kindOf(tool: string): ToolKind {
  return Object.hasOwn(kinds, tool) ? (kinds[tool] ?? 'other') : 'other';
}

type StoredMessage = {
  readonly role: 'user' | 'assistant' | 'tool' | 'system';
  readonly parts: readonly { readonly type: string; readonly data: object }[];
};

/** Returns a conversation as an editor that opens it again shows it. */
export function historyUpdates(messages: readonly StoredMessage[]): readonly SessionUpdate[] {
  return messages.flatMap(({ role, parts }) =>
    parts.flatMap((part): readonly SessionUpdate[] => {
      const { text, id, name } = part.data as Partial<Record<string, unknown>>;
      if (part.type === 'text' && typeof text === 'string' && (role === 'user' || role === 'assistant')) {
        const content = { type: 'text', text } as const;
        return [{ sessionUpdate: role === 'user' ? 'user_message_chunk' : 'agent_message_chunk', content }];
      }
      if (part.type !== 'tool_call' || typeof id !== 'string' || typeof name !== 'string') return [];
      const call = { toolCallId: id, title: name, kind: kindOf(name), status: 'completed' } as const;
      return [{ sessionUpdate: 'tool_call', ...call }];
    }),
  );
}
