/** How many tokens a conversation takes: the count of the last call, plus an estimate of everything newer. */
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import type { Usage } from '#contracts/model.ts';

/** UTF-16 units per token: low for most languages, so that estimates err on the safe side. */
export const unitsPerToken = 3;
/** Cost of an image, tokens (Anthropic: at most about 1,600). */
const imageTokens = 1_600;

/** The size of a run's context, tokens. The provider's own count makes a tokenizer unnecessary. */
export class ContextSize {
  #counted: number | undefined;

  /** `counted`: tokens of the session's last call, including its answer. If undefined, everything is estimated. */
  constructor(counted: number | undefined) {
    this.#counted = counted;
  }

  /** Records a call's count: its complete prompt, cached or not, and its answer. */
  count({ inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }: Usage): void {
    this.#counted = inputTokens + cacheReadTokens + cacheWriteTokens + outputTokens;
  }

  /** Call when the context was replaced: all of it is estimated until the next call. */
  reset(): void {
    this.#counted = undefined;
  }

  /** Returns the tokens of the messages; the last call's count covers everything up to its answer. */
  tokens(messages: readonly AgentMessage[]): number {
    const last = messages.findLastIndex(({ role, model }) => role === 'assistant' && model !== undefined);
    if (this.#counted === undefined || last === -1) return estimateTokens(messages);
    return this.#counted + estimateTokens(messages.slice(last + 1));
  }
}

/** Estimates how many tokens the messages take, erring on the high side. */
export function estimateTokens(messages: readonly AgentMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/** Estimates how many tokens one message takes. */
export function messageTokens({ parts, note = '' }: Pick<AgentMessage, 'parts' | 'note'>): number {
  let tokens = 4 + Math.ceil(note.length / unitsPerToken);
  for (const part of parts) {
    const isImage = part.type === 'binary' || part.type === 'image_url';
    tokens += isImage ? imageTokens : Math.ceil(unitsOf(part) / unitsPerToken);
  }
  return tokens;
}

/**
 * Adds up the lengths of the part's strings; serialising it to measure it took as long as reading the entire history.
 */
function unitsOf({ data }: MessagePart): number {
  let units = 0;
  for (const value of Object.values(data)) units += typeof value === 'string' ? value.length : 1;
  return units;
}
