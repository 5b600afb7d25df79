/**
 * Passes lines between an editor and the gateway, across connections. After a new connection the gateway
 * gets the editor's open requests again, which it recognizes; the editor's answers only reach the connection that asked.
 */
import { z } from 'zod';
import { parseJson } from '#channel-kit/parse-json.ts';

const messageSchema = z.looseObject({
  id: z.union([z.string(), z.number()]).nullish(),
  method: z.string().optional(),
  params: z.looseObject({}).nullish(),
});
type Message = z.output<typeof messageSchema>;

const chunkSchema = z.object({
  sessionId: z.string(),
  update: z.looseObject({
    sessionUpdate: z.string(),
    content: z.object({ text: z.string() }).optional().catch(undefined),
  }),
});

export class AcpRelay {
  #connection = 0;
  #isConnected = false;
  #initialize: Message | undefined;
  /** Requests of the editor that have no answer yet, in order. */
  readonly #open = new Map<string, Message>();
  /** The gateway's own id of each question that the editor hasn't answered. */
  readonly #asked = new Map<string, Message['id']>();
  /** The text that the editor has of the message that is being written, by session. */
  readonly #shown = new Map<string, string>();
  /** Notifications of the editor that wait for a connection. */
  #waiting: readonly string[] = [];

  /** Says whether the editor waits for an answer. */
  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Takes a line of the editor; returns what the gateway gets now. */
  fromEditor(line: string): readonly string[] {
    const message = readMessage(line);
    // The gateway says what is wrong with it.
    if (message === undefined) return this.#isConnected ? [line] : [];
    if (message.method === undefined) return this.#answer(message);
    if (message.id === undefined || message.id === null) {
      if (this.#isConnected) return [line];
      this.#waiting = [...this.#waiting, line];
      return [];
    }
    if (message.method === 'initialize') this.#initialize = message;
    if (message.method === 'session/prompt') this.#shown.delete(String(message.params?.sessionId));
    this.#open.set(keyOf(message.id), message);
    return this.#isConnected ? [line] : [];
  }

  /** Takes a line of the gateway; returns what the editor gets. */
  fromGateway(line: string): string | undefined {
    const message = readMessage(line);
    if (message === undefined) return undefined;
    if (message.method === undefined) {
      // An answer to a request that was repeated only for a new connection.
      if (message.id !== null && message.id !== undefined && !this.#open.delete(keyOf(message.id)))
        return undefined;
      return line;
    }
    if (message.id !== undefined && message.id !== null) {
      const id = `${this.#connection}.${message.id}`;
      this.#asked.set(id, message.id);
      return JSON.stringify({ ...message, id });
    }
    if (message.method === 'session/update') this.#note(message);
    if (message.method !== '$/cancel_request') return line;
    const params = { ...message.params, requestId: `${this.#connection}.${message.params?.requestId}` };
    return JSON.stringify({ ...message, params });
  }

  /** Call it when a connection is open; returns what the gateway gets first. */
  connected(): readonly string[] {
    this.#connection += 1;
    this.#isConnected = true;
    const isAnswered = this.#initialize && !this.#open.has(keyOf(this.#initialize.id));
    const again = [...(isAnswered && this.#initialize ? [this.#initialize] : []), ...this.#open.values()];
    const lines = again.map((message) => JSON.stringify(this.#withShown(message)));
    const waiting = this.#waiting;
    this.#waiting = [];
    return [...lines, ...waiting];
  }

  /** Call it when the connection is lost; returns what the editor gets. */
  lost(): readonly string[] {
    this.#isConnected = false;
    const cancelled = [...this.#asked.keys()].map((requestId) =>
      JSON.stringify({ jsonrpc: '2.0', method: '$/cancel_request', params: { requestId } }),
    );
    this.#asked.clear();
    return cancelled;
  }

  #answer(message: Message): readonly string[] {
    const outer = String(message.id);
    const id = this.#asked.get(outer);
    // A question of an earlier connection is asked again, under another id.
    if (!this.#asked.delete(outer) || !this.#isConnected) return [];
    return [JSON.stringify({ ...message, id })];
  }

  #note({ params }: Message): void {
    const { data } = chunkSchema.safeParse(params);
    if (data === undefined) return;
    const { sessionId, update } = data;
    // The model's next message follows its calls.
    if (update.sessionUpdate === 'tool_call') this.#shown.delete(sessionId);
    if (update.sessionUpdate !== 'agent_message_chunk') return;
    const before = this.#shown.get(sessionId) ?? '';
    this.#shown.set(sessionId, `${before}${update.content?.text ?? ''}`.replace(/^\n+/, ''));
  }

  #withShown(message: Message): Message {
    const shown = this.#shown.get(String(message.params?.sessionId));
    if (message.method !== 'session/prompt' || shown === undefined) return message;
    return { ...message, params: { ...message.params, _meta: { parley: { shown } } } };
  }
}

function readMessage(line: string): Message | undefined {
  try {
    return messageSchema.parse(parseJson(line));
  } catch {
    return undefined;
  }
}

function keyOf(id: Message['id']): string {
  return JSON.stringify(id ?? null);
}
