/** How many tokens a conversation takes: what the last call counted, and an estimate of what is newer. */
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import type { Usage } from '#contracts/model.ts';

/** UTF-16 units per token, on the low side for the languages people write in, so that it errs to the safe side. */
export const unitsPerToken = 3;
/** Cost of an image, tokens (Anthropic: at most about 1,600). */
const imageTokens = 1_600;

/** The size of a run's context, tokens. The provider's own count makes a tokenizer needless. */
export class ContextSize {
  #counted: number | undefined;

  /** `counted`: tokens of the session's last call, its answer included; undefined: all is estimated. */
  constructor(counted: number | undefined) {
    this.#counted = counted;
  }

  /** Takes in what a call has counted: its whole prompt, however much of it was cached, and its answer. */
  count({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }: Usage): void {
    this.#counted = inputTokens + cacheReadTokens + cacheWriteTokens + outputTokens;
  }

  /** The context has been replaced: until the next call it is estimated as a whole. */
  reset(): void {
    this.#counted = undefined;
  }

  /** Tokens of the messages; the last call's count stands for all up to its answer. */
  tokens(messages: readonly AgentMessage[]): number {
    const last = messages.findLastIndex(({ role, model }) => role === 'assistant' && model !== undefined);
    if (this.#counted === undefined || last === -1) return estimateTokens(messages);
    return this.#counted + estimateTokens(messages.slice(last + 1));
  }
}

/** About how many tokens the messages take, rather more than fewer. */
export function estimateTokens(messages: readonly AgentMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/** About how many tokens one message takes. */
export function messageTokens({ parts, note = '' }: Pick<AgentMessage, 'parts' | 'note'>): number {
  let tokens = 4 + Math.ceil(note.length / unitsPerToken);
  for (const part of parts) {
    const isImage = part.type === 'binary' || part.type === 'image_url';
    tokens += isImage ? imageTokens : Math.ceil(unitsOf(part) / unitsPerToken);
  }
  return tokens;
}

/** The length of what it says; writing it out to measure it took as long as reading the whole history. */
function unitsOf({ data }: MessagePart): number {
  let units = 0;
  for (const value of Object.values(data)) units += typeof value === 'string' ? value.length : 1;
  return units;
}
