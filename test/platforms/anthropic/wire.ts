/** The part of a Messages API request that Parley uses, after it has been checked. */
export type WireBody = {
  readonly model: string;
  readonly max_tokens: number;
  readonly messages: readonly WireMessage[];
  readonly system?: string | readonly WireBlock[];
  readonly tools?: readonly WireTool[];
  readonly stream?: boolean;
  readonly thinking?: WireThinking;
  readonly output_config?: { readonly effort?: string };
  readonly tool_choice?: { readonly type: string; readonly name?: string };
  readonly stop_sequences?: readonly string[];
  readonly metadata?: { readonly user_id?: string };
  readonly diagnostics?: { readonly previous_message_id?: string | null } | null;
};

export type WireMessage = {
  readonly role: 'user' | 'assistant';
  readonly content: string | readonly WireBlock[];
};

export type WireBlock = {
  readonly type: string;
  readonly text?: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly data?: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly tool_use_id?: string;
  readonly content?: string | readonly WireBlock[];
  readonly is_error?: boolean;
  readonly source?: { readonly type: string; readonly media_type?: string; readonly data?: string };
  readonly cache_control?: { readonly type: string; readonly ttl?: string };
};

export type WireTool = {
  readonly name: string;
  readonly description?: string;
  readonly input_schema: Record<string, unknown>;
  readonly cache_control?: { readonly type: string };
};

export type WireThinking = {
  readonly type: string;
  readonly budget_tokens?: number;
  readonly display?: string;
  readonly block_binding?: { readonly prefix_mismatch_behavior?: string };
};

export type WireUsage = {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_read_input_tokens: number;
};

export function blocksOf(message: WireMessage): readonly WireBlock[] {
  return typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content;
}

/** Returns all text that the model was shown in one request. */
export function textShown(body: WireBody): string {
  return body.messages.flatMap((message) => blocksOf(message).map(({ text }) => text ?? '')).join('\n');
}

/** Returns the text of the last block that the model was shown. */
export function lastTextShown(body: WireBody): string {
  return lastBlocks(body).at(-1)?.text ?? '';
}

/** Says whether the model is shown the result of its own call. */
export function endsInResult(body: WireBody): boolean {
  return lastBlocks(body).some(({ type }) => type === 'tool_result');
}

function lastBlocks(body: WireBody): readonly WireBlock[] {
  return blocksOf(body.messages.at(-1) ?? { role: 'user', content: '' });
}

/** Returns the last message's text without tool results, which is what a scripted model usually answers. */
export function lastUserText(body: WireBody): string {
  return lastBlocks(body)
    .flatMap((block) => (block.type === 'text' ? [block.text ?? ''] : []))
    .filter((text) => !isTimeNote(text))
    .join('\n');
}

/** Returns a message's blocks without the gateway's notes about the time. */
export function withoutNotes(message: WireMessage): readonly WireBlock[] {
  return blocksOf(message).filter(({ text = '' }) => !isTimeNote(text));
}

/** Recognizes the gateway's note on a person's message: when it was received, and from whom. */
export function isTimeNote(text: string): boolean {
  return text.startsWith('[Note from the gateway] It is ');
}
