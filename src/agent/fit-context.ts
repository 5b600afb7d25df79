/**
 * The last resort for a context that exceeds the model's window and can't be summarized: its oldest messages are
 * omitted from the request, though never from the store. The summary stays, and no call is separated from its results.
 */
import { transcriptId } from '#contracts/ids.ts';
import type { AgentMessage, MessagePart } from '#contracts/message.ts';
import type { Usage } from '#contracts/model.ts';

/** Sizes in tokens. */
export type FitTerms = {
  readonly window: number;
  /**
   * Size of the context as the run knows it, based on the last call's own count if there is one. The estimate alone
   * errs on the safe side and would cut requests long before a summary is due.
   */
  readonly tokens: number;
};

/** Returns the same messages if they fit, else the summary and the newest messages, starting with a person's. */
export function fitContext(
  messages: readonly AgentMessage[],
  { window, tokens }: FitTerms,
): readonly AgentMessage[] {
  if (tokens <= window) return messages;
  const summary = messages.slice(0, messages[0]?.isSummary ? 1 : 0);
  let left = window - estimateTokens(summary);
  let start = messages.length;
  while (start > summary.length) {
    const message = messages[start - 1];
    left -= message ? messageTokens(message) : 0;
    if (left < 0) break;
    start -= 1;
  }
  if (start === summary.length) return messages;
  const first = messages.findIndex((message, index) => index >= start && message.role === 'user');
  // Not even the newest turn fits: it is sent in full, and the provider decides.
  const from = first === -1 ? messages.findLastIndex((message) => message.role === 'user') : first;
  if (from <= summary.length) return messages;
  return [...summary, leftOut(from - summary.length, messages[from]), ...messages.slice(from)];
}

function leftOut(count: number, next: AgentMessage | undefined): AgentMessage {
  const text = `${count} earlier messages of this conversation don't fit here; sessions_history shows them.`;
  return {
    id: transcriptId('left-out'),
    role: 'system',
    parts: [{ type: 'text', data: { text } }],
    createdAt: next?.createdAt ?? 0,
  };
}

// Shortens old tool results, in the request only. The point before which results count as old moves in steps, so the
// beginning of the request stays the same for many turns and the provider can cache it.

/** The newest part of the context, which is kept in full, tokens. */
const whole = 40_000;
/** How far the point moves in one step, tokens. */
const step = 25_000;
/** The length to which an old result is shortened, UTF-16 units. */
const leftUnits = 500;

/** Shortens old results; returns the same messages while nothing is old enough. */
export function pruneResults(messages: readonly AgentMessage[]): readonly AgentMessage[] {
  const sizes = messages.map(messageTokens);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const oldUpTo = Math.floor((total - whole) / step) * step;
  if (oldUpTo <= 0) return messages;
  let sum = 0;
  return messages.map((message, index) => {
    sum += sizes[index] ?? 0;
    return message.role === 'tool' && sum <= oldUpTo ? shortened(message) : message;
  });
}

function shortened(message: AgentMessage): AgentMessage {
  // Images are only shown while the result is new.
  const parts = message.parts.filter(({ type }) => type === 'tool_result');
  return { ...message, parts: parts.map(shortenedPart) };
}

function shortenedPart(part: MessagePart): MessagePart {
  if (part.type !== 'tool_result' || part.data.content.length <= 2 * leftUnits) return part;
  const { content } = part.data;
  const note = `[an old result, shortened: the first ${leftUnits} of ${content.length} characters]`;
  return { type: 'tool_result', data: { ...part.data, content: `${content.slice(0, leftUnits)}\n${note}` } };
}

// How many tokens a conversation takes: the count of the last call, plus an estimate of everything newer.

/** UTF-16 units per token: low for most languages, so that estimates err on the safe side. */
export const unitsPerToken = 3;
/** Cost of an image or of a document's page, tokens (Anthropic: at most about 1,600). */
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
    tokens += tokensOf(part);
  }
  return tokens;
}

function tokensOf(part: MessagePart): number {
  if (part.type === 'image_url') return imageTokens;
  if (part.type === 'binary') return imageTokens * (part.data.pages ?? 1);
  return Math.ceil(unitsOf(part) / unitsPerToken);
}

/**
 * Adds up the lengths of the part's strings; serializing it to measure it took as long as reading the entire history.
 */
function unitsOf({ data }: MessagePart): number {
  let units = 0;
  for (const value of Object.values(data)) units += typeof value === 'string' ? value.length : 1;
  return units;
}
